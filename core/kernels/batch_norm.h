// Batch normalisation as our own kernels, on the device of its stream. Belongs to its stream's
// thread.
#pragma once

#include "core/norms.h"

namespace wisp {

class KernelNorms final : public Norms {
 public:
  /// Temporaries come from `pool`.
  explicit KernelNorms(MemoryPool& pool) : pool_(pool) {}

  int64_t relu_mask_bytes(const BatchNormSpec&, DType activations) const override;
  void batch_norm(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                  const Tensor& beta, const Tensor& residual, double momentum, Tensor& running_mean,
                  Tensor& running_var, Tensor& mean, Tensor& inv_std, Tensor& y,
                  Tensor& mask) override;
  void batch_norm_eval(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                       const Tensor& beta, const Tensor& residual, const Tensor& running_mean,
                       const Tensor& running_var, Tensor& y) override;
  void batch_norm_dx(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& passed,
                     const Tensor& dy, const Tensor& gamma, const Tensor& mean,
                     const Tensor& inv_std, const GradSlot& dx, const GradSlot& d_residual,
                     const GradSlot& d_gamma, const GradSlot& d_beta) override;

 private:
  MemoryPool& pool_;
};

}  // namespace wisp
