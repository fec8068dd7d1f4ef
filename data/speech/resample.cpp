#include "data/speech/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/error.h"

namespace wisp {
namespace {

constexpr double kCutoff = 0.95;  // unit: half of the lower rate
// Source: Kaiser 1974, for 80 dB: β = 0.1102 (80 - 8.7). A filter of (80 - 7.95) / (2.285 · 0.1 π)
// taps has a transition of width 0.1, in halves of the lower rate.
constexpr double kBeta = 7.857;
constexpr double kHalfWidth = 51;  // samples of the lower rate
constexpr int64_t kMostTaps = int64_t{1} << 24;

/// The modified Bessel function of order 0: Σ ((x/2)^k / k!)².
double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > 1e-12 * sum; ++k) {
    const double factor = x / (2.0 * k);
    term *= factor * factor;
    sum += term;
  }
  return sum;
}

/// h(t) without its constant factor; t is in samples of the lower rate.
double windowed_sinc(double t) {
  const double place = t / kHalfWidth;
  if (std::abs(place) > 1 - 1e-9) return 0;
  const double angle = std::numbers::pi * kCutoff * t;
  const double sinc = angle == 0 ? 1 : std::sin(angle) / angle;
  return sinc * bessel_i0(kBeta * std::sqrt(1 - place * place));
}

/// The dot product, summed in the order of 8 lanes, so that vectorised builds give the same bits.
float dot(const float* a, const float* b, int64_t count) {
  constexpr int64_t kLanes = 8;
  float lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (int64_t k = 0; k < kLanes; ++k) lane[k] += a[i + k] * b[i + k];
  for (int64_t k = 0; i < count; ++i, ++k) lane[k] += a[i] * b[i];
  return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

}  // namespace

Resampler::Resampler(int64_t from, int64_t to) : from_(from), to_(to) {
  WISP_CHECK(from > 0 && to > 0, "resample: from ", from, " to ", to,
             " samples per second, expected rates of 1 or more");
  const int64_t divisor = std::gcd(from, to);
  from_ /= divisor;
  to_ /= divisor;
  if (rates_are_equal()) return;
  // samples of the lower rate per input sample
  const double step = std::min(1.0, static_cast<double>(to_) / static_cast<double>(from_));
  const double half = std::ceil(kHalfWidth / step);
  WISP_CHECK(2 * half * static_cast<double>(to_) <= static_cast<double>(kMostTaps),
             "resample: from ", from, " to ", to,
             " samples per second takes too large a table of taps, expected rates with a larger "
             "common divisor");
  half_ = static_cast<int64_t>(half);
  taps_.reserve(static_cast<size_t>(2 * half_ * to_));
  std::vector<double> phase(static_cast<size_t>(2 * half_));
  for (int64_t p = 0; p < to_; ++p) {
    const double place = static_cast<double>(p) / static_cast<double>(to_);
    for (int64_t i = 0; i < 2 * half_; ++i)
      phase[static_cast<size_t>(i)] =
          windowed_sinc((place + static_cast<double>(half_ - 1 - i)) * step);
    const double sum = std::accumulate(phase.begin(), phase.end(), 0.0);
    for (const double tap : phase) taps_.push_back(static_cast<float>(tap / sum));
  }
}

std::vector<float> Resampler::resample(std::span<const float> samples) const {
  if (rates_are_equal()) return {samples.begin(), samples.end()};
  const int64_t count = std::ssize(samples);
  std::vector<float> result(static_cast<size_t>(length(count)));
  for (int64_t n = 0; n < std::ssize(result); ++n) {
    const int64_t first = n * from_ / to_ - half_ + 1;
    const float* taps = taps_.data() + n * from_ % to_ * 2 * half_;
    const int64_t skipped = std::max<int64_t>(0, -first);
    const int64_t end = std::min(2 * half_, count - first);
    result[static_cast<size_t>(n)] =
        dot(taps + skipped, samples.data() + first + skipped, end - skipped);
  }
  return result;
}

}  // namespace wisp
