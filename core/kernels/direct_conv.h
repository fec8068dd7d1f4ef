// Convolutions in f64, because cuDNN has none for the channels-last layout. One thread computes
// each result and adds in a fixed order. They serve the checking of gradients and are not fast.
// Used by the stream's thread.
#pragma once

#include "core/convolutions.h"

namespace wisp {

/// Convolutions::convolve() for f64.
void direct_convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                     const Tensor& second, const GradSlot& result);

}  // namespace wisp
