// Batch norm, fused with a residual and a ReLU: two passes over memory forward, two back. Sums over
// the rows of a channel are first those of chunks of rows, an index per chunk and channel, so that
// neighbours read neighbours; then a team per channel adds the chunks up in f64.
#include <algorithm>
#include <cmath>

#include "core/kernels/chunks.h"
#include "core/kernels/few.h"
#include "core/kernels/kernel_backend.h"
#include "core/loops/parallel_teams.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// Of each chunk and channel the mean, and the sum of squares of the distances from it.
template <class T, int64_t kCount>
struct ChunkMoments {
  ChunkIndex<kCount> index;
  const T* x;
  Wide<T>* mean;
  Wide<T>* squares;
  WISP_HD void operator()(int64_t i) const {
    using W = Wide<T>;
    const int64_t rows = index.chunks.rows_of(index.chunk(i));
    const T* from = x + index.first(i);
    // distances from the first row: a channel far from zero would lose its digits in its squares
    const Few<T, kCount> first(from);
    W sum[kCount] = {}, sum_of_squares[kCount] = {};
    for (int64_t row = 0; row < rows; ++row) {
      const Few<T, kCount> here(from + row * index.chunks.channels);
      for (int64_t k = 0; k < kCount; ++k) {
        const W apart = here[k] - first[k];
        sum[k] += apart;
        sum_of_squares[k] += apart * apart;
      }
    }
    for (int64_t k = 0; k < kCount; ++k) {
      const W share = sum[k] / static_cast<W>(rows);
      mean[i * kCount + k] = first[k] + share;
      squares[i * kCount + k] = sum_of_squares[k] - sum[k] * share;
    }
  }
};

/// What a channel's chunks hold, weighed: to be reduced over the chunks. Source: Chan et al. 1979.
template <class W>
struct SumOfRows {
  using Value = double;
  const W* mean;
  Chunks chunks;
  int64_t channel;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD double map(int64_t chunk) const {
    return static_cast<double>(mean[chunk * chunks.channels + channel]) *
           static_cast<double>(chunks.rows_of(chunk));
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

template <class W>
struct SumOfSquares {
  using Value = double;
  const W* mean;
  const W* squares;
  Chunks chunks;
  int64_t channel;
  double centre;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD double map(int64_t chunk) const {
    const int64_t at = chunk * chunks.channels + channel;
    const double apart = static_cast<double>(mean[at]) - centre;
    return static_cast<double>(squares[at]) +
           static_cast<double>(chunks.rows_of(chunk)) * apart * apart;
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

template <class W>
WISP_HD void move_towards(double target, double momentum, W* running) {
  const auto before = static_cast<double>(*running);
  *running = static_cast<W>(before + momentum * (target - before));
}

template <class W>
struct Moments {
  struct Shared {};
  const W* chunk_mean;
  const W* chunk_squares;
  Chunks chunks;
  double momentum, epsilon;
  W* running_mean;
  W* running_var;
  W* mean;
  W* inv_std;
  WISP_HD void operator()(const Team& team, int64_t c, Shared&) const {
    const auto rows = static_cast<double>(chunks.rows);
    const double centre =
        team.reduce_lanes(0, chunks.count(), SumOfRows<W>{chunk_mean, chunks, c}) / rows;
    const double sum = team.reduce_lanes(
        0, chunks.count(), SumOfSquares<W>{chunk_mean, chunk_squares, chunks, c, centre});
    const double squares = sum < 0.0 ? 0.0 : sum;  // a chunk's may be, by rounding; NaN stays
    team.once([&] {
      mean[c] = static_cast<W>(centre);
      inv_std[c] = static_cast<W>(1.0 / sqrt(squares / rows + epsilon));
      move_towards(centre, momentum, running_mean + c);
      move_towards(squares / (rows - 1.0), momentum, running_var + c);
    });
  }
};

/// One index per channel.
template <class W>
struct InverseDeviation {
  const W* variance;
  W* inv_std;
  double epsilon;
  WISP_HD void operator()(int64_t c) const {
    inv_std[c] = static_cast<W>(1.0 / sqrt(static_cast<double>(variance[c]) + epsilon));
  }
};

/// An index has kCount channels of a row.
template <class T, int64_t kCount>
struct Normalise {
  const T* x;
  const T* residual;  // or null
  const Wide<T>* mean;
  const Wide<T>* inv_std;
  const Wide<T>* gamma;
  const Wide<T>* beta;
  T* y;
  Divisor channels;
  bool relu;
  WISP_HD void operator()(int64_t i) const {
    using W = Wide<T>;
    const int64_t at = i * kCount, c = channels.remainder(at);
    const Few<T, kCount> from(x + at);
    const Few<W, kCount> centre(mean + c), spread(inv_std + c), scale(gamma + c), shift(beta + c);
    Few<T, kCount> value;
    for (int64_t k = 0; k < kCount; ++k)
      value[k] = (from[k] - centre[k]) * spread[k] * scale[k] + shift[k];
    if (residual) {
      const Few<T, kCount> more(residual + at);
      for (int64_t k = 0; k < kCount; ++k) value[k] += more[k];
    }
    for (int64_t k = 0; k < kCount; ++k)
      if (relu && value[k] < 0) value[k] = 0;  // NaN stays NaN
    value.store_to(y + at);
  }
};

/// What the gradients read: dz is dy through the ReLU, if there is one.
template <class T>
struct Gradient {
  const T* x;
  const T* y;  // null without ReLU
  const T* dy;
  template <int64_t kCount>
  WISP_HD Few<T, kCount> dz(int64_t at) const {
    Few<T, kCount> dz(dy + at);
    if (!y) return dz;
    const Few<T, kCount> result(y + at);
    for (int64_t k = 0; k < kCount; ++k)
      if (!(result[k] > 0)) dz[k] = 0;
    return dz;
  }
};

/// Of each chunk and channel the sums of dz and of dz (x - mean).
template <class T, int64_t kCount>
struct ChunkGradients {
  ChunkIndex<kCount> index;
  Gradient<T> of;
  const Wide<T>* mean;
  Wide<T>* sums;
  Wide<T>* products;
  WISP_HD void operator()(int64_t i) const {
    using W = Wide<T>;
    const int64_t rows = index.chunks.rows_of(index.chunk(i));
    const Few<W, kCount> centre(mean + index.channel(i));
    W sum[kCount] = {}, product[kCount] = {};
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = index.first(i) + row * index.chunks.channels;
      const Few<T, kCount> dz = of.template dz<kCount>(at), from(of.x + at);
      for (int64_t k = 0; k < kCount; ++k) {
        sum[k] += dz[k];
        product[k] += dz[k] * (from[k] - centre[k]);
      }
    }
    for (int64_t k = 0; k < kCount; ++k) {
      sums[i * kCount + k] = sum[k];
      products[i * kCount + k] = product[k];
    }
  }
};

template <class W>
struct SumOfChunks {
  using Value = double;
  const W* of;
  int64_t channels, channel;
  WISP_HD double identity() const { return 0.0; }
  WISP_HD double map(int64_t chunk) const {
    return static_cast<double>(of[chunk * channels + channel]);
  }
  WISP_HD double combine(double a, double b) const { return a + b; }
};

/// The gradients of gamma and beta, either of which may be null, and what that of x needs.
template <class W>
struct ChannelGradients {
  struct Shared {};
  const W* sums;
  const W* products;
  Chunks chunks;
  const W* inv_std;
  W* d_gamma;
  W* d_beta;
  bool accumulate_gamma, accumulate_beta;
  W* mean_dz;
  W* slope;
  WISP_HD void operator()(const Team& team, int64_t c, Shared&) const {
    const int64_t count = chunks.count(), channels = chunks.channels;
    const double sum = team.reduce_lanes(0, count, SumOfChunks<W>{sums, channels, c});
    const double product = team.reduce_lanes(0, count, SumOfChunks<W>{products, channels, c});
    team.once([&] {
      const auto rows = static_cast<double>(chunks.rows);
      const auto spread = static_cast<double>(inv_std[c]);
      if (d_gamma) deposit(d_gamma + c, static_cast<W>(product * spread), accumulate_gamma);
      if (d_beta) deposit(d_beta + c, static_cast<W>(sum), accumulate_beta);
      mean_dz[c] = static_cast<W>(sum / rows);
      slope[c] = static_cast<W>(product * spread * spread / rows);
    });
  }
};

/// Writes a few gradients, or adds them to what is there.
template <class T, int64_t kCount>
WISP_HD void deposit(T* into, const Few<T, kCount>& gradient, bool accumulate) {
  Few<T, kCount> sum = gradient;
  if (accumulate) {
    const Few<T, kCount> before(into);
    for (int64_t k = 0; k < kCount; ++k) sum[k] = before[k] + gradient[k];
  }
  sum.store_to(into);
}

/// The gradients of x and of the residual; either may be null. An index has kCount channels of a
/// row.
template <class T, int64_t kCount>
struct InputGradients {
  Gradient<T> of;
  const Wide<T>* gamma;
  const Wide<T>* mean;
  const Wide<T>* inv_std;
  const Wide<T>* mean_dz;
  const Wide<T>* slope;
  T* dx;
  T* d_residual;
  Divisor channels;
  bool accumulate_dx, accumulate_residual;
  WISP_HD void operator()(int64_t i) const {
    using W = Wide<T>;
    const int64_t at = i * kCount, c = channels.remainder(at);
    const Few<T, kCount> dz = of.template dz<kCount>(at);
    if (dx) {
      const Few<T, kCount> from(of.x + at);
      const Few<W, kCount> scale(gamma + c), centre(mean + c), spread(inv_std + c);
      const Few<W, kCount> shift(mean_dz + c), tilt(slope + c);
      Few<T, kCount> gradient;
      for (int64_t k = 0; k < kCount; ++k)
        gradient[k] = scale[k] * spread[k] * (dz[k] - shift[k] - (from[k] - centre[k]) * tilt[k]);
      deposit(dx + at, gradient, accumulate_dx);
    }
    if (d_residual) deposit(d_residual + at, dz, accumulate_residual);
  }
};

template <class T>
T* data_or_null(const GradSlot* slot) {
  return slot ? slot->into.data<T>() : nullptr;
}

bool accumulates(const GradSlot* slot) { return slot && slot->accumulate; }

template <class T>
void normalise(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
               const Tensor& gamma, const Tensor& beta, const Tensor* residual, const Tensor& mean,
               const Tensor& inv_std, const Tensor& y) {
  using W = Wide<T>;
  const T* more = spec.residual ? residual->data<T>() : nullptr;
  const std::initializer_list<const void*> tensors{
      x.raw(), more, mean.raw(), inv_std.raw(), gamma.raw(), beta.raw(), y.raw()};
  with_few<T>(spec.channels, tensors, [&](auto count) {
    parallel_for(
        stream, x.numel() / count(),
        Normalise<T, count()>{x.data<T>(), more, mean.data<W>(), inv_std.data<W>(), gamma.data<W>(),
                              beta.data<W>(), y.data<T>(), Divisor(spec.channels), spec.relu},
        count());
  });
}

}  // namespace

void KernelBackend::batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                               const Tensor& gamma, const Tensor& beta, const Tensor* residual,
                               double momentum, Tensor& running_mean, Tensor& running_var,
                               Tensor& mean, Tensor& inv_std, Tensor& y) {
  dispatch_activation(x.dtype(), "batch_norm", [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const Chunks chunks(spec);
    const Tensor means = temporary({chunks.count(), spec.channels}, wide_of(x.dtype()));
    const Tensor squares = temporary(means.shape(), means.dtype());
    with_few<T>(spec.channels, {x.raw()}, [&](auto count) {
      const ChunkIndex<count()> index(chunks);
      parallel_for(stream, index.count(),
                   ChunkMoments<T, count()>{index, x.data<T>(), means.data<W>(), squares.data<W>()},
                   chunks.chunk_rows * count());
    });
    parallel_teams(stream, spec.channels,
                   Moments<W>{means.data<W>(), squares.data<W>(), chunks, momentum, spec.epsilon,
                              running_mean.data<W>(), running_var.data<W>(), mean.data<W>(),
                              inv_std.data<W>()},
                   chunks.count());
    normalise<T>(stream, spec, x, gamma, beta, residual, mean, inv_std, y);
  });
}

void KernelBackend::batch_norm_eval(const Stream& stream, const BatchNormSpec& spec,
                                    const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                    const Tensor* residual, const Tensor& running_mean,
                                    const Tensor& running_var, Tensor& y) {
  dispatch_activation(x.dtype(), "batch_norm_eval", [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const Tensor inv_std = temporary({spec.channels}, wide_of(x.dtype()));
    parallel_for(stream, spec.channels,
                 InverseDeviation<W>{running_var.data<W>(), inv_std.data<W>(), spec.epsilon});
    normalise<T>(stream, spec, x, gamma, beta, residual, running_mean, inv_std, y);
  });
}

void KernelBackend::batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                                  const Tensor& y, const Tensor& dy, const Tensor& gamma,
                                  const Tensor& mean, const Tensor& inv_std, GradSlot* dx,
                                  GradSlot* d_residual, GradSlot* d_gamma, GradSlot* d_beta) {
  if (!spec.residual) d_residual = nullptr;
  dispatch_activation(x.dtype(), "batch_norm_dx", [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const Chunks chunks(spec);
    const DType type = wide_of(x.dtype());
    const Tensor sums = temporary({chunks.count(), spec.channels}, type);
    const Tensor products = temporary(sums.shape(), type);
    const Tensor mean_dz = temporary({spec.channels}, type);
    const Tensor slope = temporary({spec.channels}, type);
    const Gradient<T> of{x.data<T>(), spec.relu ? y.data<T>() : nullptr, dy.data<T>()};
    with_few<T>(spec.channels, {of.x, of.y, of.dy, mean.raw()}, [&](auto count) {
      const ChunkIndex<count()> index(chunks);
      parallel_for(
          stream, index.count(),
          ChunkGradients<T, count()>{index, of, mean.data<W>(), sums.data<W>(), products.data<W>()},
          chunks.chunk_rows * count());
    });
    parallel_teams(
        stream, spec.channels,
        ChannelGradients<W>{sums.data<W>(), products.data<W>(), chunks, inv_std.data<W>(),
                            data_or_null<W>(d_gamma), data_or_null<W>(d_beta), accumulates(d_gamma),
                            accumulates(d_beta), mean_dz.data<W>(), slope.data<W>()},
        chunks.count());
    if (!dx && !d_residual) return;
    const std::initializer_list<const void*> tensors{of.x,
                                                     of.y,
                                                     of.dy,
                                                     gamma.raw(),
                                                     mean.raw(),
                                                     inv_std.raw(),
                                                     mean_dz.raw(),
                                                     slope.raw(),
                                                     data_or_null<T>(dx),
                                                     data_or_null<T>(d_residual)};
    with_few<T>(spec.channels, tensors, [&](auto count) {
      parallel_for(stream, x.numel() / count(),
                   InputGradients<T, count()>{
                       of, gamma.data<W>(), mean.data<W>(), inv_std.data<W>(), mean_dz.data<W>(),
                       slope.data<W>(), data_or_null<T>(dx), data_or_null<T>(d_residual),
                       Divisor(spec.channels), accumulates(dx), accumulates(d_residual)},
                   count());
    });
  });
}

}  // namespace wisp
