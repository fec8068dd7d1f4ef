// The positions of packed sequences, for kernels. See RnnSpec. Used by the stream's thread.
#pragma once

#include <vector>

#include "core/context.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// The rows of packed sequences: position t of sequence n is row first[t] + n.
struct PackedRows {
  const int64_t* first;  // (positions + 1); the last one is the number of rows
  int64_t positions;

  WISP_HD bool has(int64_t t, int64_t n) const { return t < positions && row(t, n) < first[t + 1]; }
  WISP_HD int64_t row(int64_t t, int64_t n) const { return first[t] + n; }
};

/// The table PackedRows::first on the device. `rows` holds the number of sequences that reach each
/// position.
Tensor first_rows(Context& context, const std::vector<int64_t>& rows);

}  // namespace wisp
