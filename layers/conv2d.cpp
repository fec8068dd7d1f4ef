#include "layers/conv2d.h"

#include "layers/init.h"

namespace wisp {
namespace {

Shape weight_shape(int in, int out, Axes kernel, const ConvOptions& options) {
  WISP_CHECK(in > 0 && out > 0 && kernel.h > 0 && kernel.w > 0 && options.groups > 0 &&
                 in % options.groups == 0,
             "Conv2d: ", in, " to ", out, " channels, kernel ", kernel, ", ", options.groups,
             " groups, expected positive numbers and groups that divide the channels");
  return {out, kernel.h, kernel.w, in / options.groups};
}

}  // namespace

Conv2d::Conv2d(int in, int out, Axes kernel, ConvOptions options, bool bias)
    : Conv2d(in, out, kernel, options, bias, he_normal(out * kernel.h * kernel.w)) {}

Conv2d::Conv2d(int in, int out, Axes kernel, ConvOptions options, bool bias, Init weight)
    : options_(options),
      weight_(parameter("weight", weight_shape(in, out, kernel, options), weight, /*decay=*/true,
                        "conv")) {
  if (bias) add_bias(uniform_for(weight_.shape.numel() / out));
}

Conv2d::Conv2d(int in, int out, Axes kernel, ConvOptions options, Init weight, Init bias)
    : Conv2d(in, out, kernel, options, /*bias=*/false, weight) {
  add_bias(bias);
}

void Conv2d::add_bias(Init bias) {
  bias_ = &parameter("bias", {weight_.shape[0]}, bias, /*decay=*/false, "bias");
}

Variable Conv2d::operator()(const Variable& x) const {
  return conv2d(x, weight_.variable, options_, bias_ ? bias_->variable : Variable());
}

}  // namespace wisp
