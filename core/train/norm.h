// Norms and scaling of ranges of an arena, for clipping and the check for non-finite gradients. For
// the stream's thread.
#pragma once

#include "core/loops/ranges.h"

namespace wisp {

/// out[range.slot] = sum of squares of each range of x (f32 or f64), in double. It is infinite or
/// NaN if and only if an element is; for f32 no finite input overflows a double. The order of
/// additions is fixed.
void sums_of_squares(const Stream& stream, const Tensor& x, const Ranges& ranges, double* out);
/// Multiplies each range of x by factors[range.slot], or by its square with `squared`. A range with
/// factor 1 does not change.
void scale(const Stream& stream, const Tensor& x, const Ranges& ranges, const double* factors,
           bool squared = false);
/// x *= factor.
void scale(const Stream& stream, const Tensor& x, double factor);
void fill_zero(const Stream& stream, const Tensor& x);

}  // namespace wisp
