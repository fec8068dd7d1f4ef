#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

/// The mean over an image's positions. An index is an (image, channel).
template <class T>
struct MeanOverPositions {
  const T* x;
  T* y;
  int64_t positions;
  Divisor channels;
  WISP_HD void operator()(int64_t i) const {
    const int64_t width = channels.value();
    const T* at = x + channels.quotient(i) * positions * width + channels.remainder(i);
    Wide<T> sum = 0;
    for (int64_t p = 0; p < positions; ++p) sum += wide(at[p * width]);
    store(y + i, sum / static_cast<Wide<T>>(positions));
  }
};

/// The gradient of the mean. A row is a position of an image.
template <class T>
struct SpreadOverPositions {
  struct Shared {};
  const T* dy;
  T* dx;
  Divisor positions;
  int64_t channels;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t row, int64_t begin, int64_t end,
                          Shared&) const {
    const T* from = dy + positions.quotient(row) * channels + begin;
    T* to = dx + row * channels + begin;
    team.each(end - begin, [&](int64_t c) {
      deposit(to + c, wide(from[c]) / static_cast<Wide<T>>(positions.value()), accumulate);
    });
  }
};

}  // namespace

Variable global_avg_pool(const Variable& x) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  WISP_CHECK(shape.rank() == 4 && shape[1] * shape[2] * shape[3] > 0, "global_avg_pool: input is ",
             shape, ", expected (N, H, W, C) with at least one position and channel");
  const int64_t positions = shape[1] * shape[2];
  const int64_t channels = shape[3];
  const Tensor y = context.empty({shape[0], channels}, x.value().dtype());
  dispatch_activation(y.dtype(), "global_avg_pool", [&]<class T>(T) {
    parallel_for(
        context.stream, y.numel(),
        MeanOverPositions<T>{x.value().data<T>(), y.data<T>(), positions, Divisor(channels)});
  });
  return record(
      "global_avg_pool", y, {x}, [&context, positions, channels](const Tensor& dy, Inputs& in) {
        const GradSlot dx = in.slot(0);
        dispatch_activation(dy.dtype(), "global_avg_pool", [&]<class T>(T) {
          parallel_row_parts(context.stream, dx.into.shape().rows(), channels,
                             SpreadOverPositions<T>{dy.data<T>(), dx.into.data<T>(),
                                                    Divisor(positions), channels, dx.accumulate});
        });
      });
}

}  // namespace wisp
