// Max and average pooling of T, float or BFloat16, N, H, W, C, with sums in f32. OpenMP runs over
// images, and loops are vectorised over channels. One thread computes each image, so the bits do
// not depend on the number of threads. Called inside the stream's tasks.
#pragma once

#include "core/pools.h"

namespace wisp {

template <class T>
void max_pool_forward(const PoolSpec& spec, const T* x, T* y, int32_t* argmax);
template <class T>
void max_pool_backward(const PoolSpec& spec, const T* dy, const int32_t* argmax, T* dx,
                       bool accumulate);
template <class T>
void avg_pool_forward(const PoolSpec& spec, const T* x, T* y);
template <class T>
void avg_pool_backward(const PoolSpec& spec, const T* dy, T* dx, bool accumulate);

}  // namespace wisp
