// A 2-d convolution, by default without a bias because a norm follows it. Used by the thread of its
// context.
#pragma once

#include "core/ops.h"
#include "layers/init.h"
#include "layers/module.h"

namespace wisp {

class Conv2d final : public Module {
 public:
  /// The weight starts normal with variance 2 / (O · kH · kW). Source: He et al. 2015, "Delving
  /// deep into rectifiers", equation 14 (the backward form). The bias starts uniform in ±1 /
  /// sqrt(kH · kW · in / groups) and has no weight decay.
  Conv2d(int in, int out, Axes kernel, ConvOptions options = {}, bool bias = false)
      : Conv2d(in, out, kernel, options, bias, he_normal(out * kernel.h * kernel.w)) {}
  Conv2d(int in, int out, Axes kernel, ConvOptions options, bool bias, Init weight)
      : options_(options),
        weight_(parameter("weight", weight_shape(in, out, kernel, options), weight, /*decay=*/true,
                          "conv")) {
    if (bias) add_bias(uniform_for(weight_.shape.numel() / out));
  }
  Conv2d(int in, int out, Axes kernel, ConvOptions options, Init weight, Init bias)
      : Conv2d(in, out, kernel, options, /*bias=*/false, weight) {
    add_bias(bias);
  }

  /// (N, H, W, in) -> (N, H', W', out).
  Variable operator()(const Variable& x) const {
    return conv2d(x, weight_.variable, options_, bias_ ? bias_->variable : Variable());
  }

 private:
  static Shape weight_shape(int in, int out, Axes kernel, const ConvOptions& options) {
    WISP_CHECK(in > 0 && out > 0 && kernel.h > 0 && kernel.w > 0 && options.groups > 0 &&
                   in % options.groups == 0,
               "Conv2d: ", in, " to ", out, " channels, kernel ", kernel, ", ", options.groups,
               " groups, expected positive numbers and groups that divide the channels");
    return {out, kernel.h, kernel.w, in / options.groups};
  }
  void add_bias(Init bias) {
    bias_ = &parameter("bias", {weight_.shape[0]}, bias, /*decay=*/false, "bias");
  }

  ConvOptions options_;
  Parameter& weight_;
  Parameter* bias_ = nullptr;  // null without a bias
};

}  // namespace wisp
