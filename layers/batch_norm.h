// Batch normalisation with learned scale and shift. Used by the thread of its context.
#pragma once

#include "core/ops.h"
#include "layers/module.h"

namespace wisp {

class BatchNorm final : public Module {
 public:
  /// The scale starts at `scale`, the shift and the running mean at 0, the running variance at 1.
  /// Scale and shift have no weight decay.
  explicit BatchNorm(int64_t channels, double scale = 1.0)
      : gamma_(
            parameter("gamma", {channels}, {Init::Kind::constant, scale}, /*decay=*/false, "norm")),
        beta_(parameter("beta", {channels}, {Init::Kind::constant, 0.0}, /*decay=*/false, "norm")),
        running_mean_(buffer("running_mean", {channels}, 0.0)),
        running_var_(buffer("running_var", {channels}, 1.0)) {}

  /// Normalises x (..., channels) and returns the same shape. Moves the running statistics if the
  /// context trains.
  Variable operator()(const Variable& x, BatchNormFusion fusion = {}) const {
    BatchNormState state{.running_mean = running_mean_.value, .running_var = running_var_.value};
    return batch_norm(x, gamma_.variable, beta_.variable, state, fusion);
  }

 private:
  Parameter& gamma_;
  Parameter& beta_;
  Buffer& running_mean_;
  Buffer& running_var_;
};

}  // namespace wisp
