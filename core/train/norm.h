// Norms and scales of ranges of an arena: clipping and the check for non-finite gradients.
#pragma once

#include "core/stream.h"
#include "core/tensor.h"

namespace wisp {

/// *out = sum of squares of x (f32 or f64), in double; infinite or NaN if and only if an element is
/// (f32: no finite input overflows a double). Fixed tree.
void sum_of_squares(const Stream& stream, const Tensor& x, double* out);
/// x *= factor.
void scale(const Stream& stream, const Tensor& x, double factor);
void fill_zero(const Stream& stream, const Tensor& x);

}  // namespace wisp
