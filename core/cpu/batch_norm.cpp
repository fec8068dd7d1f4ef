#include "core/cpu/batch_norm.h"

#include <algorithm>

#include "core/cpu/narrow.h"
#include "core/loops/parallel.h"

namespace wisp {
namespace {

/// The cutting of the (rows, channels) matrix. A stretch is a few whole rows in one inner loop, so
/// that loops are long for few channels; element j of a stretch belongs to channel j % channels. A
/// chunk is a number of stretches that fits a cache.
struct Partition {
  explicit Partition(const BatchNormSpec& s)
      : channels(s.channels),
        width(std::max<int64_t>(1, 256 / s.channels) * s.channels),
        chunk(width * std::max<int64_t>(64, 16384 / width)),
        total(s.rows * s.channels),
        chunks((total + chunk - 1) / chunk) {}

  int64_t begin(int64_t index) const { return index * chunk; }
  int64_t numel(int64_t index) const { return std::min(chunk, total - begin(index)); }

  int64_t channels, width, chunk, total, chunks;
};

constexpr int64_t kShared = 4;    // shared stretches of scratch, a value per channel
constexpr int64_t kPerChunk = 3;  // stretches of scratch for each chunk

float* shared_scratch(const Partition& p, float* scratch, int64_t row) {
  return scratch + row * p.width;
}
float* chunk_scratch(const Partition& p, float* scratch, int64_t chunk, int64_t row) {
  return scratch + (kShared + kPerChunk * chunk + row) * p.width;
}

/// Adds up the stretch to one value per channel.
void fold(const Partition& p, float* stretch) {
  for (int64_t j = p.channels; j < p.width; ++j) stretch[j % p.channels] += stretch[j];
}

/// Copies the first row of the stretch to the others.
void spread(const Partition& p, float* stretch) {
  for (int64_t j = p.channels; j < p.width; ++j) stretch[j] = stretch[j - p.channels];
}

/// Memory for scratch, and a value per channel.
float* scratch_in(Workspace& workspace, const BatchNormSpec& spec) {
  const Partition p(spec);
  const int64_t numel = (kShared + kPerChunk * p.chunks) * p.width + spec.channels;
  return reinterpret_cast<float*>(workspace.of(numel * size_of(DType::f32)));
}

template <class Body>
void for_each_chunk(const Partition& p, const Body& body) {
#pragma omp parallel for schedule(static) if (p.chunks > 1)
  for (int64_t chunk = 0; chunk < p.chunks; ++chunk) body(chunk);
}

/// The sum over chunks of one scratch row's value for channel c.
double total_of(const Partition& p, float* scratch, int64_t row, int64_t c) {
  double sum = 0;
  for (int64_t chunk = 0; chunk < p.chunks; ++chunk)
    sum += static_cast<double>(chunk_scratch(p, scratch, chunk, row)[c]);
  return sum;
}

// ---- loops over one chunk of n elements

template <class T>
WISP_CLONES void add_up(const T* __restrict x, int64_t n, int64_t width, float* __restrict sums) {
  std::fill(sums, sums + width, 0.0f);
  for (int64_t i = 0; i < n; i += width) {
    const int64_t here = std::min(width, n - i);
    for (int64_t j = 0; j < here; ++j) sums[j] += wide(x[i + j]);
  }
}

template <class T>
WISP_CLONES void add_up_squares(const T* __restrict x, int64_t n, int64_t width,
                                const float* __restrict mean, float* __restrict sums) {
  std::fill(sums, sums + width, 0.0f);
  for (int64_t i = 0; i < n; i += width) {
    const int64_t here = std::min(width, n - i);
    for (int64_t j = 0; j < here; ++j) {
      const float centred = wide(x[i + j]) - mean[j];
      sums[j] += centred * centred;
    }
  }
}

template <bool kResidual, bool kRelu, class T>
WISP_CLONES void apply(const T* __restrict x, const T* __restrict residual, int64_t n,
                       int64_t width, const float* __restrict mean, const float* __restrict scale,
                       const float* __restrict shift, T* __restrict y) {
  for (int64_t i = 0; i < n; i += width) {
    const int64_t here = std::min(width, n - i);
    for (int64_t j = 0; j < here; ++j) {
      float value = (wide(x[i + j]) - mean[j]) * scale[j] + shift[j];
      if (kResidual) value += wide(residual[i + j]);
      if (kRelu) value = value < 0.0f ? 0.0f : value;  // NaN stays NaN
      store(y + i + j, value);
    }
  }
}

/// dy through the ReLU, if there is one.
template <bool kRelu>
float gradient_before_relu(float dy, float y) {
  return kRelu && !(y > 0.0f) ? 0.0f : dy;
}

template <bool kRelu, class T>
WISP_CLONES void add_up_gradients(const T* __restrict x, const T* __restrict y,
                                  const T* __restrict dy, int64_t n, int64_t width,
                                  const float* __restrict mean, float* __restrict sums,
                                  float* __restrict centred_sums) {
  std::fill(sums, sums + width, 0.0f);
  std::fill(centred_sums, centred_sums + width, 0.0f);
  for (int64_t i = 0; i < n; i += width) {
    const int64_t here = std::min(width, n - i);
    for (int64_t j = 0; j < here; ++j) {
      const float dz = gradient_before_relu<kRelu>(wide(dy[i + j]), kRelu ? wide(y[i + j]) : 0.0f);
      sums[j] += dz;
      centred_sums[j] += dz * (wide(x[i + j]) - mean[j]);
    }
  }
}

/// A gradient, unless it is not wanted.
template <class T>
struct Destination {
  T* into;
  bool accumulate;
};

template <class T>
struct BackwardArguments {
  const T *x, *y, *dy;  // y may be null without spec.relu
  const float *gamma, *mean, *inv_std;
  Destination<T> dx, d_residual;
  Destination<float> d_gamma, d_beta;
};

template <class T>
inline void put(const Destination<T>& target, int64_t begin, const float* __restrict values,
                int64_t n) {
  if (!target.into) return;
  T* __restrict into = target.into + begin;
  if (target.accumulate) {
    for (int64_t j = 0; j < n; ++j) store(into + j, wide(into[j]) + values[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) store(into + j, values[j]);
  }
}

/// The terms of dx = scale · (dz - mean_dz - (x - mean) · slope), spread over a stretch.
struct DxTerms {
  float *mean, *scale, *mean_dz, *slope;
};

template <bool kRelu, class T>
WISP_CLONES void gradients(const BackwardArguments<T>& a, int64_t begin, int64_t n, int64_t width,
                           const DxTerms& terms, float* __restrict buffer) {
  const T* __restrict x = a.x + begin;
  const T* __restrict y = kRelu ? a.y + begin : nullptr;
  const T* __restrict dy = a.dy + begin;
  const float* __restrict mean = terms.mean;
  const float* __restrict scale = terms.scale;
  const float* __restrict mean_dz = terms.mean_dz;
  const float* __restrict slope = terms.slope;
  for (int64_t i = 0; i < n; i += width) {
    const int64_t here = std::min(width, n - i);
    for (int64_t j = 0; j < here; ++j)
      buffer[j] = gradient_before_relu<kRelu>(wide(dy[i + j]), kRelu ? wide(y[i + j]) : 0.0f);
    put(a.d_residual, begin + i, buffer, here);
    for (int64_t j = 0; j < here; ++j)
      buffer[j] = scale[j] * (buffer[j] - mean_dz[j] - (wide(x[i + j]) - mean[j]) * slope[j]);
    put(a.dx, begin + i, buffer, here);
  }
}

void put_channel(const Destination<float>& target, int64_t c, double value) {
  if (!target.into) return;
  const auto rounded = static_cast<float>(value);
  target.into[c] = target.accumulate ? target.into[c] + rounded : rounded;
}

/// Mean and variance (divisor rows) of each channel. Each chunk is summed twice while it is in the
/// cache, first for its mean, so squares do not cancel.
template <class T>
void moments(const BatchNormSpec& spec, const T* x, float* mean, float* variance, float* scratch) {
  const Partition p(spec);
  const auto rows_of = [&](int64_t chunk) {
    return static_cast<double>(p.numel(chunk) / p.channels);
  };
  for_each_chunk(p, [&](int64_t chunk) {
    float* chunk_mean = chunk_scratch(p, scratch, chunk, 0);
    float* squares = chunk_scratch(p, scratch, chunk, 1);
    const T* data = x + p.begin(chunk);
    add_up(data, p.numel(chunk), p.width, chunk_mean);
    fold(p, chunk_mean);
    const auto share = static_cast<float>(1.0 / rows_of(chunk));
    for (int64_t c = 0; c < p.channels; ++c) chunk_mean[c] *= share;
    spread(p, chunk_mean);
    add_up_squares(data, p.numel(chunk), p.width, chunk_mean, squares);
    fold(p, squares);
  });
  const auto rows = static_cast<double>(spec.rows);
  for (int64_t c = 0; c < p.channels; ++c) {
    double sum = 0;
    for (int64_t chunk = 0; chunk < p.chunks; ++chunk)
      sum += rows_of(chunk) * static_cast<double>(chunk_scratch(p, scratch, chunk, 0)[c]);
    const double centre = sum / rows;
    double squares = total_of(p, scratch, 1, c);
    for (int64_t chunk = 0; chunk < p.chunks; ++chunk) {
      const double apart = static_cast<double>(chunk_scratch(p, scratch, chunk, 0)[c]) - centre;
      squares += rows_of(chunk) * apart * apart;
    }
    mean[c] = static_cast<float>(centre);
    variance[c] = static_cast<float>(squares / rows);
  }
}

struct Affine {
  const float *mean, *inv_std, *gamma, *beta;
};

/// Computes y = (x - mean) · inv_std · gamma + beta, then adds the residual and applies ReLU if the
/// spec says so.
template <class T>
void normalise(const BatchNormSpec& spec, const T* x, const T* residual, const Affine& affine, T* y,
               float* scratch) {
  const Partition p(spec);
  float* mean = shared_scratch(p, scratch, 0);
  float* scale = shared_scratch(p, scratch, 1);
  float* shift = shared_scratch(p, scratch, 2);
  for (int64_t c = 0; c < p.channels; ++c) {
    mean[c] = affine.mean[c];
    scale[c] = affine.inv_std[c] * affine.gamma[c];
    shift[c] = affine.beta[c];
  }
  for (float* stretch : {mean, scale, shift}) spread(p, stretch);
  auto* const loop = spec.residual ? (spec.relu ? apply<true, true, T> : apply<true, false, T>)
                                   : (spec.relu ? apply<false, true, T> : apply<false, false, T>);
  for_each_chunk(p, [&](int64_t chunk) {
    const int64_t begin = p.begin(chunk);
    loop(x + begin, spec.residual ? residual + begin : nullptr, p.numel(chunk), p.width, mean,
         scale, shift, y + begin);
  });
}

template <class T>
void backward(const BatchNormSpec& spec, const BackwardArguments<T>& a, float* scratch) {
  const Partition p(spec);
  const DxTerms terms{shared_scratch(p, scratch, 0), shared_scratch(p, scratch, 1),
                      shared_scratch(p, scratch, 2), shared_scratch(p, scratch, 3)};
  std::copy(a.mean, a.mean + p.channels, terms.mean);
  spread(p, terms.mean);
  auto* const sum_loop = spec.relu ? add_up_gradients<true, T> : add_up_gradients<false, T>;
  for_each_chunk(p, [&](int64_t chunk) {
    const int64_t begin = p.begin(chunk);
    float* sums = chunk_scratch(p, scratch, chunk, 0);
    float* centred_sums = chunk_scratch(p, scratch, chunk, 1);
    sum_loop(a.x + begin, spec.relu ? a.y + begin : nullptr, a.dy + begin, p.numel(chunk), p.width,
             terms.mean, sums, centred_sums);
    fold(p, sums);
    fold(p, centred_sums);
  });
  const auto rows = static_cast<double>(spec.rows);
  for (int64_t c = 0; c < p.channels; ++c) {
    const auto inv_std = static_cast<double>(a.inv_std[c]);
    const double sum = total_of(p, scratch, 0, c);
    const double normalised_sum = total_of(p, scratch, 1, c) * inv_std;
    put_channel(a.d_beta, c, sum);
    put_channel(a.d_gamma, c, normalised_sum);
    terms.scale[c] = a.gamma[c] * a.inv_std[c];
    terms.mean_dz[c] = static_cast<float>(sum / rows);
    terms.slope[c] = static_cast<float>(normalised_sum * inv_std / rows);
  }
  if (!a.dx.into && !a.d_residual.into) return;
  for (float* stretch : {terms.scale, terms.mean_dz, terms.slope}) spread(p, stretch);
  auto* const loop = spec.relu ? gradients<true, T> : gradients<false, T>;
  for_each_chunk(p, [&](int64_t chunk) {
    loop(a, p.begin(chunk), p.numel(chunk), p.width, terms, chunk_scratch(p, scratch, chunk, 2));
  });
}

}  // namespace

void CpuNorms::batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                          const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                          double momentum, Tensor& running_mean, Tensor& running_var, Tensor& mean,
                          Tensor& inv_std, Tensor& y, Tensor& no_mask) {
  if (x.dtype() == DType::f64)
    return reference_.batch_norm(stream, spec, x, gamma, beta, residual, momentum, running_mean,
                                 running_var, mean, inv_std, y, no_mask);
  submit_narrow(stream, x, [=, this](auto zero) {
    using T = decltype(zero);
    float* const scratch = scratch_in(workspace_, spec);
    float* const variance = inv_std.data<float>();  // variance until the inversion below
    moments(spec, x.data<T>(), mean.data<float>(), variance, scratch);
    const double unbiased = static_cast<double>(spec.rows) / static_cast<double>(spec.rows - 1);
    for (int64_t c = 0; c < spec.channels; ++c) {
      const auto of_channel = static_cast<double>(variance[c]);
      move_towards(static_cast<double>(mean.data<float>()[c]), momentum,
                   running_mean.data<float>() + c);
      move_towards(of_channel * unbiased, momentum, running_var.data<float>() + c);
      inv_std.data<float>()[c] = static_cast<float>(inverse_deviation(of_channel, spec.epsilon));
    }
    normalise(spec, x.data<T>(), spec.residual ? residual.data<T>() : nullptr,
              {mean.data<float>(), inv_std.data<float>(), gamma.data<float>(), beta.data<float>()},
              y.data<T>(), scratch);
  });
}

void CpuNorms::batch_norm_eval(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                               const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                               const Tensor& running_mean, const Tensor& running_var, Tensor& y) {
  if (x.dtype() == DType::f64)
    return reference_.batch_norm_eval(stream, spec, x, gamma, beta, residual, running_mean,
                                      running_var, y);
  submit_narrow(stream, x, [=, this](auto zero) {
    using T = decltype(zero);
    float* const inv_std = scratch_in(workspace_, spec);
    for (int64_t c = 0; c < spec.channels; ++c) {
      const auto variance = static_cast<double>(running_var.data<float>()[c]);
      inv_std[c] = static_cast<float>(inverse_deviation(variance, spec.epsilon));
    }
    normalise(spec, x.data<T>(), spec.residual ? residual.data<T>() : nullptr,
              {running_mean.data<float>(), inv_std, gamma.data<float>(), beta.data<float>()},
              y.data<T>(), inv_std + spec.channels);
  });
}

void CpuNorms::batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                             const Tensor& y, const Tensor& dy, const Tensor& gamma,
                             const Tensor& mean, const Tensor& inv_std, const GradSlot& dx,
                             const GradSlot& d_residual, const GradSlot& d_gamma,
                             const GradSlot& d_beta) {
  if (x.dtype() == DType::f64)
    return reference_.batch_norm_dx(stream, spec, x, y, dy, gamma, mean, inv_std, dx, d_residual,
                                    d_gamma, d_beta);
  const GradSlot to_residual = spec.residual ? d_residual : GradSlot{};
  submit_narrow(stream, x, [=, this](auto zero) {
    using T = decltype(zero);
    const BackwardArguments<T> arguments{x.data<T>(),
                                         spec.relu ? y.data<T>() : nullptr,
                                         dy.data<T>(),
                                         gamma.data<float>(),
                                         mean.data<float>(),
                                         inv_std.data<float>(),
                                         {dx.into.data<T>(), dx.accumulate},
                                         {to_residual.into.data<T>(), to_residual.accumulate},
                                         {d_gamma.into.data<float>(), d_gamma.accumulate},
                                         {d_beta.into.data<float>(), d_beta.accumulate}};
    backward(spec, arguments, scratch_in(workspace_, spec));
  });
}

}  // namespace wisp
