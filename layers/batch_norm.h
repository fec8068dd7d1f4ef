// Batch normalisation with learned scale and shift. Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class BatchNorm final : public Module {
 public:
  /// Scale starts at `scale`, shift at 0, running mean at 0 and variance at 1. No weight decay on
  /// either.
  explicit BatchNorm(int64_t channels, double scale = 1.0);

  /// x (..., channels) -> the same shape; moves the running statistics if the context trains.
  Variable operator()(const Variable& x, BatchNormFusion fusion = {}) const;

 private:
  Parameter& gamma_;
  Parameter& beta_;
  Buffer& running_mean_;
  Buffer& running_var_;
};

}  // namespace wisp
