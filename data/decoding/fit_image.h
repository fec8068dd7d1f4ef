// A picture scaled to a model's size. Plain loops give the same bits everywhere. Any thread.
#pragma once

#include <cstdint>

#include "core/tensor/tensor.h"

namespace wisp {

/// Scales the largest centred part of `image` with the aspect ratio height : width to (height,
/// width, C). `image` is (H, W, C) u8. Scaling down averages areas, scaling up is bilinear between
/// pixel centres. Returns an image that has the size already unchanged. Throws Error for another
/// kind of tensor, or a size below 1.
Tensor fit_image(const Tensor& image, int64_t height, int64_t width);

}  // namespace wisp
