// Modified Gram-Schmidt on a device. Equal inputs give equal bits. One team works on one matrix,
// and one launch takes all matrices of a unit.
#pragma once

#include "core/device/stream.h"
#include "core/random.h"

namespace wisp {

/// The columns of a matrix (count, length), each contiguous, count <= length. Element i of column c
/// is drawn from `random` with the index first + c · length + i.
struct Columns {
  float* column;
  int64_t count, length;
  Philox random;
  int64_t first;
};

/// Makes the columns of each of `count` matrices orthonormal; `matrices` is in device memory. The
/// span of a column with those before it is kept. A column that is zero, not finite, or dependent
/// on earlier ones (within f32 rounding) is replaced by a drawn one. So columns are filled up as in
/// a Householder QR. Each column is projected twice, because rounding leaves a part of the others
/// in the first pass ("twice is enough": Giraud et al. 2005). A drawn column is projected once,
/// because it is hardly ever nearly dependent. A column that only the second pass finds dependent
/// becomes zero: it has no effect now, and is drawn the next time. Sums are in double. A matrix has
/// about `numel` elements.
void orthonormalise(const Stream& stream, const Columns* matrices, int64_t count, int64_t numel);

}  // namespace wisp
