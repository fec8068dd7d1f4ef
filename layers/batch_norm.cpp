#include "layers/batch_norm.h"

namespace wisp {

BatchNorm::BatchNorm(int64_t channels, double scale)
    : gamma_(
          parameter("gamma", {channels}, {Init::Kind::constant, scale}, /*decay=*/false, "norm")),
      beta_(parameter("beta", {channels}, {Init::Kind::constant, 0.0}, /*decay=*/false, "norm")),
      running_mean_(buffer("running_mean", {channels}, 0.0)),
      running_var_(buffer("running_var", {channels}, 1.0)) {}

Variable BatchNorm::operator()(const Variable& x, BatchNormFusion fusion) const {
  BatchNormState state{.running_mean = running_mean_.value, .running_var = running_var_.value};
  return batch_norm(x, gamma_.variable, beta_.variable, state, fusion);
}

}  // namespace wisp
