// Batch norm, fused with a residual and a ReLU. It takes two passes over memory forward and two
// backward. Kernels first sum each channel over chunks of rows, with an index per chunk and channel
// so that neighbouring threads read neighbouring elements. Teams then add up the chunks in f64.
// Kernels read several rows before they compute.
#include <algorithm>
#include <cmath>

#include "core/kernels/chunks.h"
#include "core/kernels/few.h"
#include "core/kernels/kernel_backend.h"
#include "core/loops/parallel_teams.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// The mean of each chunk and channel, and the sum of squared distances from it.
template <class T, int64_t kCount>
struct ChunkMoments {
  static constexpr int kResidentBlocks = 2;
  ChunkIndex<kCount> index;
  const T* x;
  Wide<T>* mean;
  Wide<T>* squares;
  WISP_HD void operator()(int64_t i) const {
    using W = Wide<T>;
    const int64_t rows = index.chunks.rows_of(index.chunk(i)), channels = index.chunks.channels;
    const T* from = x + index.first(i);
    // distances from the first row keep the digits of a channel far from zero
    const Few<T, kCount> first(from);
    W sum[kCount] = {}, sum_of_squares[kCount] = {};
    unrolled<8>(rows, [&](int64_t row, auto n) {
      Packed<T, kCount> here[n.value];
      for (int64_t r = 0; r < n.value; ++r)
        here[r] = Packed<T, kCount>::load(from + (row + r) * channels);
      for (int64_t r = 0; r < n.value; ++r) {
        for (int64_t k = 0; k < kCount; ++k) {
          const W apart = wide(here[r].at[k]) - first[k];
          sum[k] += apart;
          sum_of_squares[k] += apart * apart;
        }
      }
    });
    for (int64_t k = 0; k < kCount; ++k) {
      const W share = sum[k] / static_cast<W>(rows);
      mean[i * kCount + k] = first[k] + share;
      squares[i * kCount + k] = sum_of_squares[k] - sum[k] * share;
    }
  }
};

template <class W>
WISP_HD void move_towards(double target, double momentum, W* running) {
  const auto before = static_cast<double>(*running);
  *running = static_cast<W>(before + momentum * (target - before));
}

/// Mean and variance, combined from the chunks by their rows. Source: Chan et al. 1979.
template <class W>
struct Moments {
  static constexpr int kResidentBlocks = 1;
  struct Shared {
    double sums[TeamChannels::kSums];
    double mean[TeamChannels::kMost];
  };
  const W* chunk_mean;
  const W* chunk_squares;
  Chunks chunks;
  double momentum, epsilon;
  W* running_mean;
  W* running_var;
  W* mean;
  W* inv_std;
  WISP_HD void operator()(const Team& team, int64_t item, Shared& shared) const {
    const TeamChannels channels(item, chunks.channels);
    const int64_t count = chunks.count();
    const auto rows = static_cast<double>(chunks.rows);
    const auto whole = static_cast<double>(chunks.chunk_rows);
    const auto last = static_cast<double>(chunks.rows_of(count - 1));
    team.each(channels.kSums, [&](int64_t i) {
      shared.sums[i] = channels.lane_sum(i, count, [&](int64_t chunk, int64_t c) {
        return static_cast<double>(chunk_mean[chunk * chunks.channels + c]) *
               (chunk < count - 1 ? whole : last);
      });
    });
    team.each(channels.width,
              [&](int64_t c) { shared.mean[c] = channels.total(shared.sums, c) / rows; });
    team.each(channels.kSums, [&](int64_t i) {
      const double centre = shared.mean[i % channels.kMost];
      shared.sums[i] = channels.lane_sum(i, count, [&](int64_t chunk, int64_t c) {
        const int64_t at = chunk * chunks.channels + c;
        const double apart = static_cast<double>(chunk_mean[at]) - centre;
        return static_cast<double>(chunk_squares[at]) +
               (chunk < count - 1 ? whole : last) * apart * apart;
      });
    });
    team.each(channels.width, [&](int64_t i) {
      const int64_t c = channels.first + i;
      const double sum = channels.total(shared.sums, i), centre = shared.mean[i];
      const double squares = sum < 0.0 ? 0.0 : sum;  // rounding may make it negative; NaN stays
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

template <class T, int64_t kCount>
struct Normalise {
  static constexpr int kResidentBlocks = 2;
  RowsIndex<kCount> index;
  const T* x;
  const T* residual;  // null without a residual
  const Wide<T>* mean;
  const Wide<T>* inv_std;
  const Wide<T>* gamma;
  const Wide<T>* beta;
  T* y;
  bool relu;
  WISP_HD void operator()(int64_t i) const {
    using W = Wide<T>;
    using Some = Packed<T, kCount>;
    const int64_t c = index.channel(i);
    const Few<W, kCount> centre(mean + c), spread(inv_std + c), scale(gamma + c), shift(beta + c);
    index.each_row(i, [&](int64_t begin, auto n) {
      Some from[n.value], more[n.value] = {};
      for (int64_t r = 0; r < n.value; ++r) from[r] = Some::load(x + begin + r * index.channels);
      if (residual)
        for (int64_t r = 0; r < n.value; ++r)
          more[r] = Some::load(residual + begin + r * index.channels);
      for (int64_t r = 0; r < n.value; ++r) {
        Few<T, kCount> value;
        for (int64_t k = 0; k < kCount; ++k) {
          value[k] = (wide(from[r].at[k]) - centre[k]) * spread[k] * scale[k] + shift[k];
          if (residual) value[k] += wide(more[r].at[k]);
          if (relu && value[k] < 0) value[k] = 0;  // NaN stays NaN
        }
        value.store_to(y + begin + r * index.channels);
      }
    });
  }
};

/// The inputs of the gradients.
template <class T, bool kRelu>
struct Gradient {
  const T* x;
  const T* y;  // null without ReLU
  const T* dy;

  template <int64_t kCount>
  class Row {
   public:
    Row() = default;
    WISP_HD Row(const Gradient& of, int64_t at)
        : x_(Packed<T, kCount>::load(of.x + at)), dy_(Packed<T, kCount>::load(of.dy + at)) {
      if constexpr (kRelu) y_ = Packed<T, kCount>::load(of.y + at);
    }
    WISP_HD Wide<T> x(int64_t k) const { return wide(x_.at[k]); }
    /// dy through the ReLU, if there is one.
    WISP_HD Wide<T> dz(int64_t k) const {
      if constexpr (kRelu)
        if (!(wide(y_.at[k]) > 0)) return 0;
      return wide(dy_.at[k]);
    }

   private:
    Packed<T, kCount> x_, y_, dy_;
  };
};

/// The sums of dz and of dz (x - mean) for each chunk and channel.
template <class T, bool kRelu, int64_t kCount>
struct ChunkGradients {
  static constexpr int kResidentBlocks = 2;
  using Row = typename Gradient<T, kRelu>::template Row<kCount>;
  ChunkIndex<kCount> index;
  Gradient<T, kRelu> of;
  const Wide<T>* mean;
  Wide<T>* sums;
  Wide<T>* products;
  WISP_HD void operator()(int64_t i) const {
    using W = Wide<T>;
    const int64_t rows = index.chunks.rows_of(index.chunk(i)), channels = index.chunks.channels;
    const int64_t begin = index.first(i);
    const Few<W, kCount> centre(mean + index.channel(i));
    W sum[kCount] = {}, product[kCount] = {};
    unrolled<4>(rows, [&](int64_t row, auto n) {
      Row here[n.value];
      for (int64_t r = 0; r < n.value; ++r) here[r] = Row(of, begin + (row + r) * channels);
      for (int64_t r = 0; r < n.value; ++r) {
        for (int64_t k = 0; k < kCount; ++k) {
          const W dz = here[r].dz(k);
          sum[k] += dz;
          product[k] += dz * (here[r].x(k) - centre[k]);
        }
      }
    });
    for (int64_t k = 0; k < kCount; ++k) {
      sums[i * kCount + k] = sum[k];
      products[i * kCount + k] = product[k];
    }
  }
};

/// The gradients of gamma and beta, which may be null, and the terms of the gradient of x.
template <class W>
struct ChannelGradients {
  static constexpr int kResidentBlocks = 1;
  struct Shared {
    double sums[2 * TeamChannels::kSums];  // the sums, then the products
  };
  const W* sums;
  const W* products;
  Chunks chunks;
  const W* inv_std;
  W* d_gamma;
  W* d_beta;
  bool accumulate_gamma, accumulate_beta;
  W* mean_dz;
  W* slope;
  WISP_HD void operator()(const Team& team, int64_t item, Shared& shared) const {
    const TeamChannels channels(item, chunks.channels);
    team.each(2 * channels.kSums, [&](int64_t i) {
      const W* of = i < channels.kSums ? sums : products;
      shared.sums[i] =
          channels.lane_sum(i % channels.kSums, chunks.count(), [&](int64_t chunk, int64_t c) {
            return static_cast<double>(of[chunk * chunks.channels + c]);
          });
    });
    team.each(channels.width, [&](int64_t i) {
      const int64_t c = channels.first + i;
      const double sum = channels.total(shared.sums, i);
      const double product = channels.total(shared.sums + channels.kSums, i);
      const auto rows = static_cast<double>(chunks.rows);
      const auto spread = static_cast<double>(inv_std[c]);
      if (d_gamma) deposit(d_gamma + c, static_cast<W>(product * spread), accumulate_gamma);
      if (d_beta) deposit(d_beta + c, static_cast<W>(sum), accumulate_beta);
      mean_dz[c] = static_cast<W>(sum / rows);
      slope[c] = static_cast<W>(product * spread * spread / rows);
    });
  }
};

/// The gradients of x and of the residual; each may be null.
template <class T, bool kRelu, int64_t kCount>
struct InputGradients {
  static constexpr int kResidentBlocks = 2;
  using Row = typename Gradient<T, kRelu>::template Row<kCount>;
  RowsIndex<kCount> index;
  Gradient<T, kRelu> of;
  const Wide<T>* gamma;
  const Wide<T>* mean;
  const Wide<T>* inv_std;
  const Wide<T>* mean_dz;
  const Wide<T>* slope;
  T* dx;
  T* d_residual;
  bool accumulate_dx, accumulate_residual;
  WISP_HD void operator()(int64_t i) const {
    using W = Wide<T>;
    const int64_t c = index.channel(i);
    const Few<W, kCount> scale(gamma + c), centre(mean + c), spread(inv_std + c);
    const Few<W, kCount> shift(mean_dz + c), tilt(slope + c);
    index.each_row(i, [&](int64_t begin, auto n) {
      Row here[n.value];
      for (int64_t r = 0; r < n.value; ++r) here[r] = Row(of, begin + r * index.channels);
      for (int64_t r = 0; r < n.value; ++r) {
        const int64_t at = begin + r * index.channels;
        Few<T, kCount> dz, gradient;
        for (int64_t k = 0; k < kCount; ++k) {
          dz[k] = here[r].dz(k);
          gradient[k] =
              scale[k] * spread[k] * (dz[k] - shift[k] - (here[r].x(k) - centre[k]) * tilt[k]);
        }
        if (dx) deposit(dx + at, gradient, accumulate_dx);
        if (d_residual) deposit(d_residual + at, dz, accumulate_residual);
      }
    });
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
    const RowsIndex<count()> index(spec);
    parallel_for(stream, index.count(),
                 Normalise<T, count()>{index, x.data<T>(), more, mean.data<W>(), inv_std.data<W>(),
                                       gamma.data<W>(), beta.data<W>(), y.data<T>(), spec.relu},
                 index.kRows * count());
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
    parallel_teams(stream, TeamChannels::items(spec.channels),
                   Moments<W>{means.data<W>(), squares.data<W>(), chunks, momentum, spec.epsilon,
                              running_mean.data<W>(), running_var.data<W>(), mean.data<W>(),
                              inv_std.data<W>()},
                   chunks.count() * TeamChannels::kMost);
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
  const auto gradients = [&](auto zero, auto relu) {
    using T = decltype(zero);
    using W = Wide<T>;
    const Chunks chunks(spec);
    const DType type = wide_of(x.dtype());
    const Tensor sums = temporary({chunks.count(), spec.channels}, type);
    const Tensor products = temporary(sums.shape(), type);
    const Tensor mean_dz = temporary({spec.channels}, type);
    const Tensor slope = temporary({spec.channels}, type);
    const Gradient<T, relu()> of{x.data<T>(), relu() ? y.data<T>() : nullptr, dy.data<T>()};
    with_few<T>(spec.channels, {of.x, of.y, of.dy, mean.raw()}, [&](auto count) {
      const ChunkIndex<count()> index(chunks);
      parallel_for(stream, index.count(),
                   ChunkGradients<T, relu(), count()>{index, of, mean.data<W>(), sums.data<W>(),
                                                      products.data<W>()},
                   chunks.chunk_rows * count());
    });
    parallel_teams(
        stream, TeamChannels::items(spec.channels),
        ChannelGradients<W>{sums.data<W>(), products.data<W>(), chunks, inv_std.data<W>(),
                            data_or_null<W>(d_gamma), data_or_null<W>(d_beta), accumulates(d_gamma),
                            accumulates(d_beta), mean_dz.data<W>(), slope.data<W>()},
        chunks.count() * TeamChannels::kMost);
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
      const RowsIndex<count()> index(spec);
      parallel_for(stream, index.count(),
                   InputGradients<T, relu(), count()>{
                       index, of, gamma.data<W>(), mean.data<W>(), inv_std.data<W>(),
                       mean_dz.data<W>(), slope.data<W>(), data_or_null<T>(dx),
                       data_or_null<T>(d_residual), accumulates(dx), accumulates(d_residual)},
                   index.kRows * count());
    });
  };
  dispatch_activation(x.dtype(), "batch_norm_dx", [&](auto zero) {
    if (spec.relu) return gradients(zero, std::true_type{});
    gradients(zero, std::false_type{});
  });
}

}  // namespace wisp
