// The gradients of a batch norm that is fused with a residual and a ReLU, in two passes over
// memory. Kernels first sum each channel over chunks of rows, and teams add up the chunks, as
// batch_norm.cpp does for the moments.
#include "core/kernels/batch_norm.h"
#include "core/kernels/chunks.h"
#include "core/kernels/few.h"
#include "core/kernels/relu_mask.h"
#include "core/loops/parallel_teams.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// The inputs of the gradients.
template <class T, bool kRelu>
struct Gradient {
  const T* x;
  const T* dy;
  ReluMask<T> mask;  // none without ReLU

  template <int64_t kCount>
  class Row {
   public:
    Row() = default;
    WISP_HD Row(const Gradient& of, int64_t at)
        : x_(Packed<T, kCount>::load(of.x + at)), dy_(Packed<T, kCount>::load(of.dy + at)) {
      if constexpr (kRelu) passed_ = of.mask.passed(at);
    }
    WISP_HD Wide<T> x(int64_t k) const { return wide(x_.at[k]); }
    /// dy through the ReLU, if there is one.
    WISP_HD Wide<T> dz(int64_t k) const {
      if constexpr (kRelu)
        if ((passed_ >> k & 1) == 0) return 0;
      return wide(dy_.at[k]);
    }

   private:
    Packed<T, kCount> x_, dy_;
    unsigned passed_;
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

}  // namespace

void KernelNorms::batch_norm_dx(const Stream& stream, const BatchNormSpec& spec, const Tensor& x,
                                const Tensor& passed, const Tensor& dy, const Tensor& gamma,
                                const Tensor& mean, const Tensor& inv_std, const GradSlot& dx,
                                const GradSlot& d_residual, const GradSlot& d_gamma,
                                const GradSlot& d_beta) {
  const GradSlot to_residual = spec.residual ? d_residual : GradSlot{};
  const auto gradients = [&](auto zero, auto relu) {
    using T = decltype(zero);
    using W = Wide<T>;
    const Chunks chunks(spec);
    const DType type = wide_of(x.dtype());
    const Tensor sums({chunks.count(), spec.channels}, type, pool_, stream.id());
    const Tensor products(sums.shape(), type, pool_, stream.id());
    const Tensor mean_dz({spec.channels}, type, pool_, stream.id());
    const Tensor slope({spec.channels}, type, pool_, stream.id());
    const Gradient<T, relu()> of{
        x.data<T>(), dy.data<T>(), {relu() ? passed.data<uint8_t>() : nullptr, spec.channels}};
    with_few<T>(spec.channels, {of.x, of.dy, mean.raw()}, [&](auto count) {
      const ChunkIndex<count()> index(chunks);
      parallel_for(stream, index.count(),
                   ChunkGradients<T, relu(), count()>{index, of, mean.data<W>(), sums.data<W>(),
                                                      products.data<W>()},
                   chunks.chunk_rows * count());
    });
    parallel_teams(
        stream, TeamChannels::items(spec.channels),
        ChannelGradients<W>{sums.data<W>(), products.data<W>(), chunks, inv_std.data<W>(),
                            d_gamma.into.data<W>(), d_beta.into.data<W>(), d_gamma.accumulate,
                            d_beta.accumulate, mean_dz.data<W>(), slope.data<W>()},
        chunks.count() * TeamChannels::kMost);
    if (!dx.into.defined() && !to_residual.into.defined()) return;
    const std::initializer_list<const void*> tensors{of.x,
                                                     of.dy,
                                                     gamma.raw(),
                                                     mean.raw(),
                                                     inv_std.raw(),
                                                     mean_dz.raw(),
                                                     slope.raw(),
                                                     dx.into.data<T>(),
                                                     to_residual.into.data<T>()};
    with_few<T>(spec.channels, tensors, [&](auto count) {
      const RowsIndex<count()> index(spec);
      parallel_for(stream, index.count(),
                   InputGradients<T, relu(), count()>{
                       index, of, gamma.data<W>(), mean.data<W>(), inv_std.data<W>(),
                       mean_dz.data<W>(), slope.data<W>(), dx.into.data<T>(),
                       to_residual.into.data<T>(), dx.accumulate, to_residual.accumulate},
                   index.kRows * count());
    });
  };
  dispatch_activation(x.dtype(), "batch_norm_dx", [&](auto zero) {
    if (spec.relu) return gradients(zero, std::true_type{});
    gradients(zero, std::false_type{});
  });
}

}  // namespace wisp
