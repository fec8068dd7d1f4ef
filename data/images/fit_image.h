// A picture in the size that a model wants. Plain loops, the same bits everywhere. Any thread may
// call.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace wisp {

/// A copy of `height` x `width` of (H, W, C) u8: the largest centred part of that aspect, scaled by
/// area averaging (down) or bilinear between pixel centres (up). An image of that size already is
/// returned as it is. Throws Error for another kind of tensor, or a size below 1.
Tensor fit_image(const Tensor& image, int64_t height, int64_t width);

}  // namespace wisp
