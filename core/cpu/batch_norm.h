// Batch norm with the residual and the ReLU fused, in f32 on rows of T, float or BFloat16: two
// passes over memory forward, two backward. OpenMP over chunks of rows that depend on sizes alone,
// partial results combined in order: the bits do not depend on the number of threads.
#pragma once

#include "core/backend.h"

namespace wisp {

/// Elements of scratch that each function below may use.
int64_t batch_norm_scratch(const BatchNormSpec& spec);

/// Mean and variance (divisor rows) of each channel. Each chunk is summed twice while it is in the
/// cache, so there is no cancellation.
template <class T>
void batch_norm_moments(const BatchNormSpec& spec, const T* x, float* mean, float* variance,
                        float* scratch);

struct BatchNormAffine {
  const float *mean, *inv_std, *gamma, *beta;
};
/// y = (x - mean) · inv_std · gamma + beta, then + residual, then ReLU, as the spec says.
template <class T>
void batch_norm_apply(const BatchNormSpec& spec, const T* x, const T* residual,
                      const BatchNormAffine& affine, T* y, float* scratch);

template <class T>
struct BatchNormTarget {
  T* into = nullptr;  // null: not wanted
  bool accumulate = false;
};
template <class T>
struct BatchNormBackward {
  const T *x, *y, *dy;  // y is read only if spec.relu
  const float *gamma, *mean, *inv_std;
  BatchNormTarget<T> dx, d_residual;
  BatchNormTarget<float> d_gamma, d_beta;
};
template <class T>
void batch_norm_backward(const BatchNormSpec& spec, const BatchNormBackward<T>& arguments,
                         float* scratch);

}  // namespace wisp
