// Batch norm, fused with a residual and a ReLU: two passes over memory forward, two back. Sums over
// the rows of a channel are first those of chunks of rows, an index per chunk and channel, so that
// neighbours read neighbours; then a team per channel adds the chunks up in f64.
#include <algorithm>
#include <cmath>

#include "core/divisor.h"
#include "core/kernels/kernel_backend.h"
#include "core/loops/parallel_teams.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// How rows are cut: depends on the extents alone.
struct Chunks {
  static constexpr int64_t kLeastRows = 32, kIndices = 1 << 18;  // what a GPU has room for at once
  int64_t rows, channels, chunk_rows;

  explicit Chunks(const BatchNormSpec& s)
      : rows(s.rows), channels(s.channels), chunk_rows(rows_at_least(s)) {}

  WISP_HD int64_t count() const { return (rows + chunk_rows - 1) / chunk_rows; }
  WISP_HD int64_t rows_of(int64_t chunk) const {
    const int64_t left = rows - chunk * chunk_rows;
    return left < chunk_rows ? left : chunk_rows;
  }

 private:
  static int64_t rows_at_least(const BatchNormSpec& s) {
    const int64_t most = std::max<int64_t>(1, kIndices / s.channels);  // chunks
    return std::max(kLeastRows, (s.rows + most - 1) / most);
  }
};

/// Of each chunk and channel the mean, and the sum of squares of the distances from it.
template <class T>
struct ChunkMoments {
  Chunks chunks;
  Divisor channels;
  const T* x;
  Wide<T>* mean;
  Wide<T>* squares;
  WISP_HD void operator()(int64_t i) const {
    const int64_t chunk = channels.quotient(i), c = channels.remainder(i);
    const int64_t rows = chunks.rows_of(chunk);
    const T* from = x + chunk * chunks.chunk_rows * chunks.channels + c;
    // distances from the first row: a channel far from zero would lose its digits in its squares
    const Wide<T> first = wide(*from);
    Wide<T> sum = 0, sum_of_squares = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const Wide<T> apart = wide(from[row * chunks.channels]) - first;
      sum += apart;
      sum_of_squares += apart * apart;
    }
    const Wide<T> share = sum / static_cast<Wide<T>>(rows);
    mean[i] = first + share;
    squares[i] = sum_of_squares - sum * share;
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

/// One index per element.
template <class T>
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
    const int64_t c = channels.remainder(i);
    Wide<T> value = (wide(x[i]) - mean[c]) * inv_std[c] * gamma[c] + beta[c];
    if (residual) value += wide(residual[i]);
    store(y + i, relu && value < 0 ? Wide<T>(0) : value);  // NaN stays NaN
  }
};

/// What the gradients read: dz is dy through the ReLU, if there is one.
template <class T>
struct Gradient {
  const T* x;
  const T* y;  // null without ReLU
  const T* dy;
  WISP_HD Wide<T> dz(int64_t i) const { return y && !(wide(y[i]) > 0) ? Wide<T>(0) : wide(dy[i]); }
};

/// Of each chunk and channel the sums of dz and of dz (x - mean).
template <class T>
struct ChunkGradients {
  Chunks chunks;
  Divisor channels;
  Gradient<T> of;
  const Wide<T>* mean;
  Wide<T>* sums;
  Wide<T>* products;
  WISP_HD void operator()(int64_t i) const {
    const int64_t chunk = channels.quotient(i), c = channels.remainder(i);
    const int64_t rows = chunks.rows_of(chunk);
    const int64_t first = chunk * chunks.chunk_rows * chunks.channels + c;
    Wide<T> sum = 0, product = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t at = first + row * chunks.channels;
      const Wide<T> dz = of.dz(at);
      sum += dz;
      product += dz * (wide(of.x[at]) - mean[c]);
    }
    sums[i] = sum;
    products[i] = product;
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

/// One index per element: the gradients of x and of the residual; either may be null.
template <class T>
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
    const int64_t c = channels.remainder(i);
    const Wide<T> dz = of.dz(i);
    const Wide<T> centred = dz - mean_dz[c] - (wide(of.x[i]) - mean[c]) * slope[c];
    if (dx) deposit(dx + i, gamma[c] * inv_std[c] * centred, accumulate_dx);
    if (d_residual) deposit(d_residual + i, dz, accumulate_residual);
  }
};

template <class T>
T* data_or_null(const GradSlot* slot) {
  return slot ? slot->into.data<T>() : nullptr;
}

bool accumulates(const GradSlot* slot) { return slot && slot->accumulate; }

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
    parallel_for(stream, means.numel(),
                 ChunkMoments<T>{chunks, Divisor(spec.channels), x.data<T>(), means.data<W>(),
                                 squares.data<W>()},
                 chunks.chunk_rows);
    parallel_teams(stream, spec.channels,
                   Moments<W>{means.data<W>(), squares.data<W>(), chunks, momentum, spec.epsilon,
                              running_mean.data<W>(), running_var.data<W>(), mean.data<W>(),
                              inv_std.data<W>()},
                   chunks.count());
    parallel_for(stream, x.numel(),
                 Normalise<T>{x.data<T>(), spec.residual ? residual->data<T>() : nullptr,
                              mean.data<W>(), inv_std.data<W>(), gamma.data<W>(), beta.data<W>(),
                              y.data<T>(), Divisor(spec.channels), spec.relu});
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
    parallel_for(stream, x.numel(),
                 Normalise<T>{x.data<T>(), spec.residual ? residual->data<T>() : nullptr,
                              running_mean.data<W>(), inv_std.data<W>(), gamma.data<W>(),
                              beta.data<W>(), y.data<T>(), Divisor(spec.channels), spec.relu});
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
    parallel_for(stream, sums.numel(),
                 ChunkGradients<T>{chunks, Divisor(spec.channels), of, mean.data<W>(),
                                   sums.data<W>(), products.data<W>()},
                 chunks.chunk_rows);
    parallel_teams(
        stream, spec.channels,
        ChannelGradients<W>{sums.data<W>(), products.data<W>(), chunks, inv_std.data<W>(),
                            data_or_null<W>(d_gamma), data_or_null<W>(d_beta), accumulates(d_gamma),
                            accumulates(d_beta), mean_dz.data<W>(), slope.data<W>()},
        chunks.count());
    if (!dx && !d_residual) return;
    parallel_for(
        stream, x.numel(),
        InputGradients<T>{of, gamma.data<W>(), mean.data<W>(), inv_std.data<W>(), mean_dz.data<W>(),
                          slope.data<W>(), data_or_null<T>(dx), data_or_null<T>(d_residual),
                          Divisor(spec.channels), accumulates(dx), accumulates(d_residual)});
  });
}

}  // namespace wisp
