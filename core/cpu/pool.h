// Max and average pooling in f32, N, H, W, C. OpenMP over images, vectorised over channels; each
// image belongs to one thread, so the bits do not depend on their number.
#pragma once

#include "core/backend.h"

namespace wisp {

void max_pool_forward(const PoolSpec& spec, const float* x, float* y, int32_t* argmax);
void max_pool_backward(const PoolSpec& spec, const float* dy, const int32_t* argmax, float* dx,
                       bool accumulate);
void avg_pool_forward(const PoolSpec& spec, const float* x, float* y);
void avg_pool_backward(const PoolSpec& spec, const float* dy, float* dx, bool accumulate);

}  // namespace wisp
