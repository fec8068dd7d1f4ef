// Batch normalisation with the residual and the ReLU after it, the backend's object for it
// (core/backend.h), and the arithmetic that all backends share.
#pragma once

#include <cmath>

#include "core/autograd.h"
#include "core/base/host_device.h"

namespace wisp {

/// The rows are all positions of all images, (N·H·W, C).
struct BatchNormSpec {
  int64_t rows = 0, channels = 0;
  double epsilon = 1e-5;
  bool relu = false;      // y = max(0, ·) after scale, shift and residual
  bool residual = false;  // a tensor of x's shape is added before the ReLU
};

/// The factor that gives a channel of this variance a deviation of 1.
WISP_HD inline double inverse_deviation(double variance, double epsilon) {
  return 1.0 / sqrt(variance + epsilon);
}

/// Moves a running statistic by `momentum` towards the batch's.
template <class W>
WISP_HD void move_towards(double target, double momentum, W* running) {
  const auto before = static_cast<double>(*running);
  *running = static_cast<W>(before + momentum * (target - before));
}

class Norms {
 public:
  virtual ~Norms() = default;
  /// Bytes of `mask`, in which batch_norm() marks the elements that ReLU passed on. 0 if there is
  /// no ReLU, or the backend keeps no mask.
  virtual int64_t relu_mask_bytes(const BatchNormSpec&, DType /*activations*/) const { return 0; }
  /// Batch normalisation in training, by batch statistics. `mean` and `inv_std` (C) are kept for
  /// the backward pass. The running statistics move by `momentum` towards the batch's; the running
  /// variance has divisor rows - 1. `mask` is (relu_mask_bytes) u8, or undefined if that is 0.
  virtual void batch_norm(const Stream&, const BatchNormSpec&, const Tensor& x, const Tensor& gamma,
                          const Tensor& beta, const Tensor& residual, double momentum,
                          Tensor& running_mean, Tensor& running_var, Tensor& mean, Tensor& inv_std,
                          Tensor& y, Tensor& mask) = 0;
  /// Batch normalisation in an evaluation, by running statistics.
  virtual void batch_norm_eval(const Stream&, const BatchNormSpec&, const Tensor& x,
                               const Tensor& gamma, const Tensor& beta, const Tensor& residual,
                               const Tensor& running_mean, const Tensor& running_var,
                               Tensor& y) = 0;
  /// A gradient whose slot has no tensor is not wanted. `passed` is the mask, or y if there is no
  /// mask. It is read only if spec.relu is set, d_residual written only if spec.residual is.
  virtual void batch_norm_dx(const Stream&, const BatchNormSpec&, const Tensor& x,
                             const Tensor& passed, const Tensor& dy, const Tensor& gamma,
                             const Tensor& mean, const Tensor& inv_std, const GradSlot& dx,
                             const GradSlot& d_residual, const GradSlot& d_gamma,
                             const GradSlot& d_beta) = 0;
};

}  // namespace wisp
