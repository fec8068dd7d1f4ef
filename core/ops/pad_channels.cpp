#include "core/loops/parallel.h"
#include "core/ops.h"
#include "core/ops/gradient.h"

namespace wisp {
namespace {

struct PadGeometry {
  int64_t height, width, in_channels;
  int64_t out_height, out_width, channels;
  int64_t stride, before;  // `before`: zero channels in front
};

/// One index per position of the output, so that the divisions are not made for each channel.
template <class T>
struct PadChannels {
  const T* x;
  T* y;
  PadGeometry g;
  WISP_HD void operator()(int64_t position) const {
    const int64_t column = position % g.out_width * g.stride;
    const int64_t row = position / g.out_width % g.out_height * g.stride;
    const int64_t image = position / (g.out_width * g.out_height);
    const T* from = x + ((image * g.height + row) * g.width + column) * g.in_channels;
    T* to = y + position * g.channels;
    for (int64_t c = 0; c < g.before; ++c) store(to + c, Wide<T>(0));
    for (int64_t c = 0; c < g.in_channels; ++c) store(to + g.before + c, wide(from[c]));
    for (int64_t c = g.before + g.in_channels; c < g.channels; ++c) store(to + c, Wide<T>(0));
  }
};

/// One index per position of the input.
template <class T>
struct PadChannelsGradient {
  const T* dy;
  T* dx;
  PadGeometry g;
  bool accumulate;
  WISP_HD void operator()(int64_t position) const {
    const int64_t column = position % g.width;
    const int64_t row = position / g.width % g.height;
    const int64_t image = position / (g.width * g.height);
    const bool kept = row % g.stride == 0 && column % g.stride == 0;
    const int64_t out_position =
        (image * g.out_height + row / g.stride) * g.out_width + column / g.stride;
    const T* from = dy + out_position * g.channels + g.before;
    T* to = dx + position * g.in_channels;
    for (int64_t c = 0; c < g.in_channels; ++c)
      deposit(to + c, kept ? wide(from[c]) : Wide<T>(0), accumulate);
  }
};

}  // namespace

Variable pad_channels(const Variable& x, int64_t channels, int64_t stride) {
  Context& context = x.context();
  const Shape& shape = x.shape();
  WISP_CHECK(shape.rank() == 4 && shape[3] > 0 && channels >= shape[3], "pad_channels: input ",
             shape, " to ", channels, " channels, expected (N, H, W, C) with C from 1 to that");
  WISP_CHECK(stride > 0, "pad_channels: stride ", stride, ", expected a positive number");
  const PadGeometry geometry{.height = shape[1],
                             .width = shape[2],
                             .in_channels = shape[3],
                             .out_height = (shape[1] + stride - 1) / stride,
                             .out_width = (shape[2] + stride - 1) / stride,
                             .channels = channels,
                             .stride = stride,
                             .before = (channels - shape[3]) / 2};
  const Tensor y = context.empty({shape[0], geometry.out_height, geometry.out_width, channels},
                                 x.value().dtype());
  dispatch_activation(y.dtype(), "pad_channels", [&](auto zero) {
    using T = decltype(zero);
    parallel_for(context.stream, y.shape().rows(),
                 PadChannels<T>{x.value().data<T>(), y.data<T>(), geometry});
  });
  return record("pad_channels", y, {x},
                [&context, geometry](const Tensor& dy, Inputs& in) {
                  const GradSlot dx = in.slot(0);
                  dispatch_activation(dy.dtype(), "pad_channels", [&](auto zero) {
                    using T = decltype(zero);
                    parallel_for(context.stream, dx.into.shape().rows(),
                                 PadChannelsGradient<T>{dy.data<T>(), dx.into.data<T>(), geometry,
                                                        dx.accumulate});
                  });
                },
                {{"stride", stride}, {"before", geometry.before}});
}

}  // namespace wisp
