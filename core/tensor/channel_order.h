// Between the order of extents here, channels last, and that of other programs' files, channels
// first: (N, H, W, C) and (N, C, H, W), of weights (O, kH, kW, I) and (O, I, kH, kW). Tensors that
// are not of rank 4 are the same in both. Any thread.
#pragma once

#include "core/tensor/tensor.h"

namespace wisp {

Shape channels_first(const Shape& shape);
/// A copy on the host, or `tensor` itself where the orders are the same. f32 or f64.
Tensor channels_first(const Tensor& tensor);
/// The inverse.
Tensor channels_last(const Tensor& tensor);

}  // namespace wisp
