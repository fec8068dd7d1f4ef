#include <algorithm>

#include "core/backend.h"
#include "core/convolutions.h"
#include "core/ops.h"
#include "core/ops/bias.h"

namespace wisp {
namespace {

int64_t least(const Axes& axes) { return std::min(axes.h, axes.w); }

ConvSpec spec_of(const Tensor& x, const Tensor& weight, const ConvOptions& options) {
  WISP_CHECK(x.shape().rank() == 4 && weight.shape().rank() == 4, "conv2d: input ", x.shape(),
             " and weight ", weight.shape(), ", expected (N, H, W, I) and (O, kH, kW, I / groups)");
  WISP_CHECK(weight.dtype() == wide_of(x.dtype()), "conv2d: input is ", name_of(x.dtype()),
             ", weight ", name_of(weight.dtype()), ", expected ", name_of(wide_of(x.dtype())));
  const auto [stride, pad, dilation, groups] = options;
  WISP_CHECK(least(stride) > 0 && least(pad) >= 0 && least(dilation) > 0 && groups > 0,
             "conv2d: stride ", stride, ", pad ", pad, ", dilation ", dilation, ", groups ", groups,
             ", expected positive numbers (pad may be 0)");
  const ConvSpec spec{.batch = x.shape()[0],
                      .height = x.shape()[1],
                      .width = x.shape()[2],
                      .in_channels = x.shape()[3],
                      .out_channels = weight.shape()[0],
                      .kernel = {weight.shape()[1], weight.shape()[2]},
                      .stride = stride,
                      .pad = pad,
                      .dilation = dilation,
                      .groups = groups};
  WISP_CHECK(spec.in_channels == weight.shape()[3] * spec.groups, "conv2d: input has ",
             spec.in_channels, " channels, weight expects ", weight.shape()[3], " x ", spec.groups,
             " groups");
  WISP_CHECK(spec.out_channels % spec.groups == 0, "conv2d: ", spec.out_channels,
             " output channels do not divide into ", spec.groups, " groups");
  const Axes reach = spec.reach();
  WISP_CHECK(spec.height + 2 * pad.h >= reach.h && spec.width + 2 * pad.w >= reach.w,
             "conv2d: a kernel that reaches over ", reach, " does not fit into input ", x.shape(),
             " with pad ", pad);
  return spec;
}

}  // namespace

Variable conv2d(const Variable& x, const Variable& weight, ConvOptions options,
                const Variable& bias) {
  Context& context = x.context();
  const ConvSpec spec = spec_of(x.value(), weight.value(), options);
  check_bias("conv2d", bias, spec.out_channels, weight.value().dtype());
  const Tensor y = context.empty(
      {spec.batch, spec.out_height(), spec.out_width(), spec.out_channels}, x.value().dtype());
  const Tensor& w = weight.factor(x.value().dtype());
  Convolutions& convolutions = context.backend.convolutions();
  convolutions.convolve(context.stream, ConvPass::forward, spec, x.value(), w, {y});
  std::vector<Variable> inputs{x, weight};
  if (bias.defined()) {
    add_bias(context.stream, bias.value(), y);
    inputs.push_back(bias);
  }
  return record("conv2d", y, inputs,
                [&context, &convolutions, spec, has_bias = bias.defined(), input = x.value(), w](
                    const Tensor& dy, Inputs& in) {
                  if (in.wanted(0))
                    convolutions.convolve(context.stream, ConvPass::dx, spec, dy, w, in.slot(0));
                  if (in.wanted(1))
                    convolutions.convolve(context.stream, ConvPass::dw, spec, input, dy,
                                          in.slot(1));
                  if (has_bias && in.wanted(2))
                    sum_rows(context.stream, context.pool, dy, in.slot(2));
                },
                {{"stride_h", spec.stride.h},
                 {"stride_w", spec.stride.w},
                 {"pad_h", spec.pad.h},
                 {"pad_w", spec.pad.w},
                 {"dilation_h", spec.dilation.h},
                 {"dilation_w", spec.dilation.w},
                 {"groups", spec.groups}});
}

}  // namespace wisp
