#include "core/loops/parallel_row_parts.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

struct PadGeometry {
  Divisor height, width, out_height, out_width;
  int64_t in_channels, channels;
  int64_t stride, before;  // `before`: zero channels before x's channels
};

/// The forward pass. A row is a position of the output.
template <class T>
struct PadChannels {
  struct Shared {};
  const T* x;
  T* y;
  PadGeometry g;
  WISP_HD void operator()(const auto& team, int64_t position, int64_t begin, int64_t end,
                          Shared&) const {
    const int64_t line = g.out_width.quotient(position), image = g.out_height.quotient(line);
    const int64_t column = g.out_width.remainder(position) * g.stride;
    const int64_t row = g.out_height.remainder(line) * g.stride;
    const T* from =
        x + ((image * g.height.value() + row) * g.width.value() + column) * g.in_channels;
    T* to = y + position * g.channels + begin;
    const int64_t first = begin - g.before;  // channel of x
    team.each(end - begin, [&](int64_t c) {
      const bool there = 0 <= first + c && first + c < g.in_channels;
      store(to + c, there ? wide(from[first + c]) : Wide<T>(0));
    });
  }
};

/// The gradient. A row is a position of the input.
template <class T>
struct PadChannelsGradient {
  struct Shared {};
  const T* dy;
  T* dx;
  PadGeometry g;
  bool accumulate;
  WISP_HD void operator()(const auto& team, int64_t position, int64_t begin, int64_t end,
                          Shared&) const {
    const int64_t line = g.width.quotient(position), image = g.height.quotient(line);
    const int64_t column = g.width.remainder(position), row = g.height.remainder(line);
    const bool kept = row % g.stride == 0 && column % g.stride == 0;
    const int64_t out_position =
        (image * g.out_height.value() + row / g.stride) * g.out_width.value() + column / g.stride;
    const T* from = dy + out_position * g.channels + g.before + begin;
    T* to = dx + position * g.in_channels + begin;
    team.each(end - begin,
              [&](int64_t c) { deposit(to + c, kept ? wide(from[c]) : Wide<T>(0), accumulate); });
  }
};

}  // namespace

Variable pad_channels(const Variable& x, int64_t channels, int64_t stride) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  WISP_CHECK(shape.rank() == 4 && shape[3] > 0 && channels >= shape[3], "pad_channels: input ",
             shape, " to ", channels, " channels, expected (N, H, W, C) with C from 1 to that");
  WISP_CHECK(stride > 0, "pad_channels: stride ", stride, ", expected a positive number");
  const PadGeometry geometry{.height = Divisor(shape[1]),
                             .width = Divisor(shape[2]),
                             .out_height = Divisor((shape[1] + stride - 1) / stride),
                             .out_width = Divisor((shape[2] + stride - 1) / stride),
                             .in_channels = shape[3],
                             .channels = channels,
                             .stride = stride,
                             .before = (channels - shape[3]) / 2};
  const Tensor y =
      context.empty({shape[0], geometry.out_height.value(), geometry.out_width.value(), channels},
                    x.value().dtype());
  dispatch_activation(y.dtype(), "pad_channels", [&]<class T>(T) {
    parallel_row_parts(context.stream, y.shape().rows(), channels,
                       PadChannels<T>{x.value().data<T>(), y.data<T>(), geometry});
  });
  return record("pad_channels", y, {x},
                [&context, geometry](const Tensor& dy, Inputs& in) {
                  const GradSlot dx = in.slot(0);
                  dispatch_activation(dy.dtype(), "pad_channels", [&]<class T>(T) {
                    parallel_row_parts(context.stream, dx.into.shape().rows(), geometry.in_channels,
                                       PadChannelsGradient<T>{dy.data<T>(), dx.into.data<T>(),
                                                              geometry, dx.accumulate});
                  });
                },
                {{"stride", stride}, {"before", geometry.before}});
}

}  // namespace wisp
