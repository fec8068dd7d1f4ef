// Batch norm, fused with a residual and a ReLU, in two passes over memory. Kernels first sum each
// channel over chunks of rows, with an index per chunk and channel so that neighbouring threads
// read neighbouring elements. Teams then add up the chunks in f64. Kernels read several rows before
// they compute.
#include "core/kernels/batch_norm.h"

#include "core/kernels/chunks.h"
#include "core/kernels/few.h"
#include "core/kernels/relu_mask.h"
#include "core/loops/parallel_teams.h"

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
      inv_std[c] = static_cast<W>(inverse_deviation(squares / rows, epsilon));
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
    inv_std[c] = static_cast<W>(inverse_deviation(static_cast<double>(variance[c]), epsilon));
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
  ReluMask<T> mask;  // none, or with a width of kCount
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
        const int64_t at = begin + r * index.channels;
        const Some rounded = value.packed();
        rounded.store_to(y + at);
        if (mask) mask.mark(at, rounded.at);
      }
    });
  }
};

/// One index per byte of the mask, for a y that is not aligned to 16 bytes.
template <class T>
struct MarkPassed {
  const T* y;
  ReluMask<T> mask;
  WISP_HD void operator()(int64_t i) const {
    T some[kFew<T>];
    for (int64_t k = 0; k < kFew<T>; ++k) some[k] = y[i * kFew<T> + k];
    mask.mark(i * kFew<T>, some);
  }
};

/// Writes y, and its mask if there is one.
template <class T>
void normalise(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
               const Tensor& gamma, const Tensor& beta, const Tensor& residual, const Tensor& mean,
               const Tensor& inv_std, const Tensor& y, ReluMask<T> mask) {
  using W = Wide<T>;
  const T* more = spec.residual ? residual.data<T>() : nullptr;
  const std::initializer_list<const void*> tensors{
      x.raw(), more, mean.raw(), inv_std.raw(), gamma.raw(), beta.raw(), y.raw()};
  with_few<T>(spec.channels, tensors, [&](auto count) {
    const RowsIndex<count()> index(spec);
    const bool marks = count() == mask.width();
    parallel_for(stream, index.count(),
                 Normalise<T, count()>{index, x.data<T>(), more, mean.data<W>(), inv_std.data<W>(),
                                       gamma.data<W>(), beta.data<W>(), y.data<T>(),
                                       marks ? mask : ReluMask<T>(), spec.relu},
                 index.kRows * count());
    if (mask && !marks)
      parallel_for(stream, y.numel() / mask.width(), MarkPassed<T>{y.data<T>(), mask},
                   mask.width());
  });
}

}  // namespace

int64_t KernelNorms::relu_mask_bytes(const BatchNormSpec& spec, DType activations) const {
  int64_t bytes = 0;
  if (!spec.relu) return bytes;
  dispatch_activation(activations, "batch_norm", [&](auto zero) {
    bytes = ReluMask<decltype(zero)>::bytes_of(spec.rows, spec.channels);
  });
  return bytes;
}

void KernelNorms::batch_norm(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                             const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                             double momentum, Tensor& running_mean, Tensor& running_var,
                             Tensor& mean, Tensor& inv_std, Tensor& y, Tensor& mask) {
  dispatch_activation(x.dtype(), "batch_norm", [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const Chunks chunks(spec);
    const Tensor means({chunks.count(), spec.channels}, wide_of(x.dtype()), pool_, stream.id());
    const Tensor squares(means.shape(), means.dtype(), pool_, stream.id());
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
    normalise<T>(stream, spec, x, gamma, beta, residual, mean, inv_std, y,
                 {mask.data<uint8_t>(), spec.channels});
  });
}

void KernelNorms::batch_norm_eval(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                                  const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                                  const Tensor& running_mean, const Tensor& running_var,
                                  Tensor& y) {
  dispatch_activation(x.dtype(), "batch_norm_eval", [&](auto zero) {
    using T = decltype(zero);
    using W = Wide<T>;
    const Tensor inv_std({spec.channels}, wide_of(x.dtype()), pool_, stream.id());
    parallel_for(stream, spec.channels,
                 InverseDeviation<W>{running_var.data<W>(), inv_std.data<W>(), spec.epsilon});
    normalise<T>(stream, spec, x, gamma, beta, residual, running_mean, inv_std, y, {});
  });
}

}  // namespace wisp
