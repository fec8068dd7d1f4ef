// Where the positions of packed sequences stand, for kernels. See RnnSpec.
#pragma once

#include <vector>

#include "core/context.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// Position t of sequence n is row first[t] + n.
struct PackedRows {
  const int64_t* first;  // (positions + 1); the last is the number of rows
  int64_t positions;

  WISP_HD int64_t sequences_at(int64_t t) const { return first[t + 1] - first[t]; }
  WISP_HD bool has(int64_t t, int64_t n) const { return t < positions && sequences_at(t) > n; }
  WISP_HD int64_t row(int64_t t, int64_t n) const { return first[t] + n; }
};

/// What PackedRows reads, on the device: `rows` tells how many sequences reach each position.
Tensor first_rows(Context& context, const std::vector<int64_t>& rows);

}  // namespace wisp
