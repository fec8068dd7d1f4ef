// The neighbours that mixup mixes, for its ops and for losses. Any thread may use them.
#pragma once

#include "core/tensor/tensor.h"

namespace wisp {

/// The row that a row is mixed with; the row itself if it is the last of an odd number.
WISP_HD inline int64_t neighbour_of(int64_t row, int64_t rows) {
  const int64_t other = row ^ 1;
  return other < rows ? other : row;
}

/// Throws Error unless `shares` are (rows) f32.
void check_shares(const char* op, const Tensor& shares, int64_t rows);

}  // namespace wisp
