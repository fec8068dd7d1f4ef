// Batch norm with the residual and the ReLU fused, of f32 and bf16, computed in f32. It takes two
// passes over memory forward and two backward. OpenMP runs over chunks of rows that depend on sizes
// alone. Partial results are combined in order, so the bits do not depend on the number of threads.
// Belongs to its stream's thread.
#pragma once

#include "core/norms.h"
#include "core/workspace.h"

namespace wisp {

class CpuNorms final : public Norms {
 public:
  /// `reference` computes f64. Scratch memory is `workspace`.
  CpuNorms(Norms& reference, Workspace& workspace) : reference_(reference), workspace_(workspace) {}

  void batch_norm(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                  const Tensor& beta, const Tensor& residual, double momentum, Tensor& running_mean,
                  Tensor& running_var, Tensor& mean, Tensor& inv_std, Tensor& y,
                  Tensor& no_mask) override;
  void batch_norm_eval(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                       const Tensor& beta, const Tensor& residual, const Tensor& running_mean,
                       const Tensor& running_var, Tensor& y) override;
  void batch_norm_dx(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& y,
                     const Tensor& dy, const Tensor& gamma, const Tensor& mean,
                     const Tensor& inv_std, const GradSlot& dx, const GradSlot& d_residual,
                     const GradSlot& d_gamma, const GradSlot& d_beta) override;

 private:
  Norms& reference_;
  Workspace& workspace_;
};

}  // namespace wisp
