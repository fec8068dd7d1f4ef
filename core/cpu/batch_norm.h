// Batch norm with the residual and the ReLU fused, in f32: two passes over memory forward, two
// backward. OpenMP over chunks of rows that depend on sizes alone, partial results combined in
// order: the bits do not depend on the number of threads.
#pragma once

#include "core/backend.h"

namespace wisp {

/// Elements of scratch that each function below may use.
int64_t batch_norm_scratch(const BatchNormSpec& spec);

/// Mean and variance (divisor rows) of each channel. Each chunk is summed twice while it is in the
/// cache, so there is no cancellation.
void batch_norm_moments(const BatchNormSpec& spec, const float* x, float* mean, float* variance,
                        float* scratch);

struct BatchNormAffine {
  const float *mean, *inv_std, *gamma, *beta;
};
/// y = (x - mean) · inv_std · gamma + beta, then + residual, then ReLU, as the spec says.
void batch_norm_apply(const BatchNormSpec& spec, const float* x, const float* residual,
                      const BatchNormAffine& affine, float* y, float* scratch);

struct BatchNormTarget {
  float* into = nullptr;  // null: not wanted
  bool accumulate = false;
};
struct BatchNormBackward {
  const float *x, *y, *dy;  // y is read only if spec.relu
  const float *gamma, *mean, *inv_std;
  BatchNormTarget dx, d_residual, d_gamma, d_beta;
};
void batch_norm_backward(const BatchNormSpec& spec, const BatchNormBackward& arguments,
                         float* scratch);

}  // namespace wisp
