// Batch norm with the residual and the ReLU fused, in f32 on rows of T, float or BFloat16. It takes
// two passes over memory forward and two backward. OpenMP runs over chunks of rows that depend on
// sizes alone. Partial results are combined in order, so the bits do not depend on the number of
// threads. Called inside the stream's tasks.
#pragma once

#include "core/norms.h"

namespace wisp {

/// Elements of scratch memory that each function below needs at most.
int64_t batch_norm_scratch(const BatchNormSpec& spec);

/// Mean and variance (divisor rows) of each channel. Each chunk is summed twice while it is in the
/// cache, first for its mean, so squares do not cancel.
template <class T>
void batch_norm_moments(const BatchNormSpec& spec, const T* x, float* mean, float* variance,
                        float* scratch);

struct BatchNormAffine {
  const float *mean, *inv_std, *gamma, *beta;
};
/// Computes y = (x - mean) · inv_std · gamma + beta, then adds the residual and applies ReLU if the
/// spec says so.
template <class T>
void batch_norm_apply(const BatchNormSpec& spec, const T* x, const T* residual,
                      const BatchNormAffine& affine, T* y, float* scratch);

template <class T>
struct BatchNormTarget {
  T* into = nullptr;  // null: no gradient wanted
  bool accumulate = false;
};
template <class T>
struct BatchNormBackward {
  const T *x, *y, *dy;  // y may be null without spec.relu
  const float *gamma, *mean, *inv_std;
  BatchNormTarget<T> dx, d_residual;
  BatchNormTarget<float> d_gamma, d_beta;
};
template <class T>
void batch_norm_backward(const BatchNormSpec& spec, const BatchNormBackward<T>& arguments,
                         float* scratch);

}  // namespace wisp
