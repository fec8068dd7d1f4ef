// Modified Gram-Schmidt, on the device and with equal bits wherever its input has equal bits.
#pragma once

#include "core/random.h"
#include "core/stream.h"
#include "core/tensor.h"

namespace wisp {

int64_t orthonormal_scratch_bytes();

/// The columns, (count, length) with each one contiguous, count <= length, become orthonormal: each
/// keeps its span with those before it. One that is zero, depends on those before it (within f32
/// rounding) or holds no finite numbers is drawn from `random`, element i of column c by its index
/// first + c · length + i, and so filled in as a Householder QR would. Columns are projected twice,
/// against what rounding leaves of the others in the first pass ("twice is enough": Giraud et al.
/// 2005); one that is drawn in between once, as it is hardly ever nearly dependent. One that only
/// the second pass finds dependent is left zero: it stands for nothing, and is drawn the next time.
/// Sums are in double. `scratch` is 8-byte aligned.
void orthonormalise(const Stream& stream, const Tensor& columns, const Philox& random,
                    int64_t first, std::byte* scratch);

}  // namespace wisp
