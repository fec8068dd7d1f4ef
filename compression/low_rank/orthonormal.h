// Modified Gram-Schmidt, on the device and with equal bits wherever its input has equal bits. A
// matrix is a team's work: all of a unit take one launch.
#pragma once

#include "core/device/stream.h"
#include "core/random.h"

namespace wisp {

/// The columns of a matrix, (count, length) with each one contiguous, count <= length. Element i of
/// column c is drawn from `random` by its index first + c · length + i.
struct Columns {
  float* column;
  int64_t count, length;
  Philox random;
  int64_t first;
};

/// The columns of each of `count` matrices, which device memory names, become orthonormal: each
/// keeps its span with those before it. One that is zero, depends on those before it (within f32
/// rounding) or holds no finite numbers is drawn, and so filled in as a Householder QR would.
/// Columns are projected twice, against what rounding leaves of the others in the first pass
/// ("twice is enough": Giraud et al. 2005); one that is drawn in between once, as it is hardly ever
/// nearly dependent. One that only the second pass finds dependent is left zero: it stands for
/// nothing, and is drawn the next time. Sums are in double. A matrix has about `numel` elements.
void orthonormalise(const Stream& stream, const Columns* matrices, int64_t count, int64_t numel);

}  // namespace wisp
