#include "core/backend.h"
#include "core/ops.h"

namespace wisp {
namespace {

ConvSpec spec_of(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  WISP_CHECK(x.shape().rank() == 4 && weight.shape().rank() == 4, "conv2d: input ", x.shape(),
             " and weight ", weight.shape(), ", expected (N, H, W, I) and (O, kH, kW, I / groups)");
  WISP_CHECK(weight.dtype() == wide_of(x.dtype()), "conv2d: input is ", name_of(x.dtype()),
             ", weight ", name_of(weight.dtype()), ", expected ", name_of(wide_of(x.dtype())));
  WISP_CHECK(options.stride > 0 && options.pad >= 0 && options.dilation > 0 && options.groups > 0,
             "conv2d: stride ", options.stride, ", pad ", options.pad, ", dilation ",
             options.dilation, ", groups ", options.groups,
             ", expected positive numbers (pad may be 0)");
  const ConvSpec spec{.batch = x.shape()[0],
                      .height = x.shape()[1],
                      .width = x.shape()[2],
                      .in_channels = x.shape()[3],
                      .out_channels = weight.shape()[0],
                      .kernel_h = weight.shape()[1],
                      .kernel_w = weight.shape()[2],
                      .stride = options.stride,
                      .pad = options.pad,
                      .dilation = options.dilation,
                      .groups = options.groups};
  WISP_CHECK(spec.in_channels == weight.shape()[3] * spec.groups, "conv2d: input has ",
             spec.in_channels, " channels, weight expects ", weight.shape()[3], " x ", spec.groups,
             " groups");
  WISP_CHECK(spec.out_channels % spec.groups == 0, "conv2d: ", spec.out_channels,
             " output channels do not divide into ", spec.groups, " groups");
  const int64_t reach_h = spec.dilation * (spec.kernel_h - 1) + 1;
  const int64_t reach_w = spec.dilation * (spec.kernel_w - 1) + 1;
  WISP_CHECK(spec.height + 2 * spec.pad >= reach_h && spec.width + 2 * spec.pad >= reach_w,
             "conv2d: a kernel that reaches over ", reach_h, " x ", reach_w,
             " does not fit into input ", x.shape(), " with pad ", spec.pad);
  return spec;
}

}  // namespace

Variable conv2d(const Variable& x, const Variable& weight, ConvOptions options) {
  Context& context = x.context();
  const ConvSpec spec = spec_of(x.value(), weight.value(), options);
  Tensor y = context.empty({spec.batch, spec.out_height(), spec.out_width(), spec.out_channels},
                           x.value().dtype());
  context.backend.conv2d(context.stream, spec, x.value(), weight.value(), y);
  return record(
      "conv2d", y, {x, weight},
      [&context, spec, input = x.value(), w = weight.value()](const Tensor& dy, Inputs& in) {
        if (in.wanted(0)) context.backend.conv2d_dx(context.stream, spec, dy, w, in.slot(0));
        if (in.wanted(1)) context.backend.conv2d_dw(context.stream, spec, input, dy, in.slot(1));
      },
      {{"stride", spec.stride},
       {"pad", spec.pad},
       {"dilation", spec.dilation},
       {"groups", spec.groups}});
}

}  // namespace wisp
