// Convolutions in f64, because cuDNN has none for the channels-last layout. One thread computes
// each result and adds in a fixed order. They serve the checking of gradients and are not fast.
// Used by the stream's thread.
#pragma once

#include "core/convolutions.h"

namespace wisp {

void direct_conv2d(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& w,
                   const Tensor& y);
void direct_conv2d_dx(const Stream& stream, const ConvSpec& spec, const Tensor& dy, const Tensor& w,
                      const GradSlot& dx);
void direct_conv2d_dw(const Stream& stream, const ConvSpec& spec, const Tensor& x, const Tensor& dy,
                      const GradSlot& dw);

}  // namespace wisp
