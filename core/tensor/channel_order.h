// Conversions between Wisp's channels-last order and the channels-first order of other programs'
// files: (N, H, W, C) and (N, C, H, W), for weights (O, kH, kW, I) and (O, I, kH, kW). Tensors of
// other ranks than 4 are the same in both orders. Any thread.
#pragma once

#include "core/tensor/tensor.h"

namespace wisp {

Shape channels_first(const Shape& shape);
/// A host copy, or `tensor` itself if its rank is not 4. f32 or f64.
Tensor channels_first(const Tensor& tensor);
/// The inverse of channels_first().
Tensor channels_last(const Tensor& tensor);

}  // namespace wisp
