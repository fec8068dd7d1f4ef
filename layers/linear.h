// A fully connected layer. Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/init.h"
#include "layers/module.h"

namespace wisp {

class Linear final : public Module {
 public:
  /// Weight and bias start uniform in ±1 / sqrt(in). The bias has no weight decay.
  Linear(int64_t in, int64_t out, bool bias = true)
      : weight_(parameter("weight", {out, in}, uniform_for(in), /*decay=*/true, "linear")) {
    if (bias) add_bias(uniform_for(in));
  }
  Linear(int64_t in, int64_t out, Init weight, Init bias)
      : weight_(parameter("weight", {out, in}, weight, /*decay=*/true, "linear")) {
    add_bias(bias);
  }
  /// Uses the weight (out, in) of another module, which must outlive this one. The bias is its own.
  Linear(Parameter& weight, Init bias) : weight_(weight) { add_bias(bias); }

  /// (N, in) -> (N, out).
  Variable operator()(const Variable& x, LinearOptions options = {}) const {
    return linear(x, weight_.variable, bias_ ? bias_->variable : Variable(), options);
  }

 private:
  void add_bias(Init bias) {
    bias_ = &parameter("bias", {weight_.shape[0]}, bias, /*decay=*/false, "bias");
  }

  Parameter& weight_;
  Parameter* bias_ = nullptr;  // null without a bias
};

}  // namespace wisp
