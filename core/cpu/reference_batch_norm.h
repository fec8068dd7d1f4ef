// Batch norm of the reference backend: plain loops, one channel at a time. Any thread may call.
#pragma once

#include <cstdint>

#include "core/cpu/reference_operands.h"
#include "core/norms.h"

namespace wisp {

/// Moments in double: an f32 sum over many rows would lose the digits of a channel far from zero.
struct ReferenceMoments {
  double mean, variance;
};

template <class T>
ReferenceMoments channel_moments(const BatchNormSpec& s, const T* x, int64_t c) {
  const auto count = static_cast<double>(s.rows);
  double sum = 0;
  for (int64_t r = 0; r < s.rows; ++r) sum += static_cast<double>(x[r * s.channels + c]);
  const double mean = sum / count;
  double squares = 0;
  for (int64_t r = 0; r < s.rows; ++r) {
    const double centred = static_cast<double>(x[r * s.channels + c]) - mean;
    squares += centred * centred;
  }
  return {mean, squares / count};
}

template <class T>
void normalise_channel(const BatchNormSpec& s, const T* x, const T* residual, T mean, T inv_std,
                       T gamma, T beta, int64_t c, T* y) {
  for (int64_t r = 0; r < s.rows; ++r) {
    const int64_t i = r * s.channels + c;
    T value = (x[i] - mean) * inv_std * gamma + beta;
    if (s.residual) value += residual[i];
    y[i] = s.relu && value < 0 ? T{0} : value;  // NaN stays NaN, so that it shows in the loss
  }
}

template <class T>
struct BatchNormGradients {
  Target<T> dx, d_residual, d_gamma, d_beta;
};

template <class T>
void batch_norm_dx_channel(const BatchNormSpec& s, const T* x, const T* y, const T* dy, T gamma,
                           T mean, T inv_std, int64_t c, const BatchNormGradients<T>& out) {
  const auto dz = [&](int64_t i) { return s.relu && !(y[i] > 0) ? T{0} : dy[i]; };
  const auto normalised = [&](int64_t i) { return (x[i] - mean) * inv_std; };
  T sum = 0;
  T dot_normalised = 0;
  for (int64_t r = 0; r < s.rows; ++r) {
    const int64_t i = r * s.channels + c;
    sum += dz(i);
    dot_normalised += dz(i) * normalised(i);
  }
  out.d_beta.put(c, sum);
  out.d_gamma.put(c, dot_normalised);
  const T count = static_cast<T>(s.rows);
  for (int64_t r = 0; r < s.rows; ++r) {
    const int64_t i = r * s.channels + c;
    const T centred = dz(i) - sum / count - normalised(i) * dot_normalised / count;
    out.dx.put(i, gamma * inv_std * centred);
    if (s.residual) out.d_residual.put(i, dz(i));
  }
}

}  // namespace wisp
