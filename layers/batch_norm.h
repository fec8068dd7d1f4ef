// Batch normalisation with learned scale and shift. Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class BatchNorm final : public Module {
 public:
  /// The scale starts at `scale`, the shift and the running mean at 0, the running variance at 1.
  /// Scale and shift have no weight decay.
  explicit BatchNorm(int64_t channels, double scale = 1.0);

  /// Normalises x (..., channels) and returns the same shape. Moves the running statistics if the
  /// context trains.
  Variable operator()(const Variable& x, BatchNormFusion fusion = {}) const;

 private:
  Parameter& gamma_;
  Parameter& beta_;
  Buffer& running_mean_;
  Buffer& running_var_;
};

}  // namespace wisp
