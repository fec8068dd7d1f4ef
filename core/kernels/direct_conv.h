// Convolutions in f64, for which cuDNN has nothing with channels last: each result is one thread's,
// who adds in a fixed order. What checks gradients, not what trains fast.
#pragma once

#include "core/backend.h"

namespace wisp {

void direct_conv2d(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& w,
                   const Tensor& y);
void direct_conv2d_dx(const Stream& stream, const ConvSpec& spec, const Tensor& dy, const Tensor& w,
                      const GradSlot& dx);
void direct_conv2d_dw(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& dy,
                      const GradSlot& dw);

}  // namespace wisp
