// A fully connected layer. Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class Linear final : public Module {
 public:
  /// Weight and bias start uniform in ±1 / sqrt(in). The bias has no weight decay.
  Linear(int64_t in, int64_t out, bool bias = true);
  Linear(int64_t in, int64_t out, Init weight, Init bias);
  /// Uses the weight (out, in) of another module, which must outlive this one. The bias is its own.
  Linear(Parameter& weight, Init bias);

  /// (N, in) -> (N, out).
  Variable operator()(const Variable& x, LinearOptions options = {}) const;

 private:
  void add_bias(Init bias);

  Parameter& weight_;
  Parameter* bias_ = nullptr;  // null without a bias
};

}  // namespace wisp
