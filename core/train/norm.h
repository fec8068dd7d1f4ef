// Norms and scales of ranges of an arena: clipping and the check for non-finite gradients.
#pragma once

#include "core/loops/ranges.h"

namespace wisp {

/// out[range.slot] = sum of squares of each range of x (f32 or f64), in double; infinite or NaN if
/// and only if an element is (f32: no finite input overflows a double). Fixed trees.
void sums_of_squares(const Stream& stream, const Tensor& x, const Ranges& ranges, double* out);
/// x *= factors[range.slot]² (with `squared`) or factors[range.slot], over each range of x; one of
/// factor 1 is left alone.
void scale(const Stream& stream, const Tensor& x, const Ranges& ranges, const double* factors,
           bool squared = false);
/// x *= factor.
void scale(const Stream& stream, const Tensor& x, double factor);
void fill_zero(const Stream& stream, const Tensor& x);

}  // namespace wisp
