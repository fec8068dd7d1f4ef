// A picture scaled to a model's size. Plain loops give the same bits everywhere. Any thread.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace wisp {

/// Scales the largest centred part of `image`, (H, W, C) u8, of the aspect ratio height : width to
/// (height, width, C). Scaling down averages areas, scaling up is bilinear between pixel centres.
/// An image of that size stays. Throws Error for another kind of tensor, or a size below 1.
Tensor fit_image(const Tensor& image, int64_t height, int64_t width);

}  // namespace wisp
