// A fully connected layer. Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class Linear final : public Module {
 public:
  /// Weight and bias start uniform in ±1 / sqrt(in). No weight decay on the bias.
  Linear(int64_t in, int64_t out, bool bias = true);
  Linear(int64_t in, int64_t out, Init weight, Init bias);
  /// Uses the weight (out, in) of another module, which outlives this one; the bias is its own.
  Linear(Parameter& weight, Init bias);

  /// (N, in) -> (N, out).
  Variable operator()(const Variable& x, LinearOptions options = {}) const;

 private:
  void add_bias(Init bias);

  Parameter& weight_;
  Parameter* bias_ = nullptr;  // if there is one
};

}  // namespace wisp
