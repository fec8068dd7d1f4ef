// Thresholds of magnitude that are measured at intervals, and adjusted to the number of passing
// entries in between. One f32 per field in device memory, 0 before the first measurement. Part of
// Ok-Topk (oktopk.cpp). Used by the comm thread.
#pragma once

#include "compression/sparse/sparse_list.h"

namespace wisp {

/// out[f] = the smallest magnitude of field f's entries, 0 if there are none.
void measure_list(const Stream& stream, const UnitSpec& spec, const Room& room,
                  const SparseList& list, float* out);

/// Raises thresholds that select more than `most` entries. This applies where a threshold above 0
/// selected `list`. The threshold is multiplied by `factor`, up to five times, until the list's
/// `smallest` does not pass.
void raise_thresholds(const Stream& stream, const UnitSpec& spec, const Room& most,
                      const SparseList& list, const float* smallest, double factor,
                      float* thresholds);

/// Sets thresholds to `smallest` where they are 0, or everywhere if `all`.
void set_thresholds(const Stream& stream, const UnitSpec& spec, const float* smallest, bool all,
                    float* thresholds);

/// Adjusts thresholds to the counts of passing entries, which lie `stride` words apart: divides by
/// `factor` if fewer than 2k/3 passed, multiplies by it if more than `most` did.
void follow_thresholds(const Stream& stream, const UnitSpec& spec, const Room& most,
                       const int64_t* count, int64_t stride, double factor, float* thresholds);

}  // namespace wisp
