// A 2-d convolution, by default without a bias because a norm follows it. Used by the thread of its
// context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class Conv2d final : public Module {
 public:
  /// The weight starts normal with variance 2 / (O · kH · kW). Source: He et al. 2015, "Delving
  /// deep into rectifiers", equation 14 (the backward form). The bias starts uniform in ±1 /
  /// sqrt(kH · kW · in / groups) and has no weight decay.
  Conv2d(int in, int out, Axes kernel, ConvOptions options = {}, bool bias = false);
  Conv2d(int in, int out, Axes kernel, ConvOptions options, bool bias, Init weight);
  Conv2d(int in, int out, Axes kernel, ConvOptions options, Init weight, Init bias);

  /// (N, H, W, in) -> (N, H', W', out).
  Variable operator()(const Variable& x) const;

 private:
  void add_bias(Init bias);

  ConvOptions options_;
  Parameter& weight_;
  Parameter* bias_ = nullptr;  // null without a bias
};

}  // namespace wisp
