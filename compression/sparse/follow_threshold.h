// Thresholds of magnitude that are measured now and then and in between follow the counts that they
// let pass. One float a field in device memory, 0 before it was ever measured. Part of Ok-Topk
// (oktopk.cpp).
#pragma once

#include "compression/sparse/sparse_list.h"

namespace wisp {

/// out[f] = the smallest magnitude of field f's entries, 0 if there are none.
void measure_list(const Stream& stream, const UnitSpec& spec, const Room& room,
                  const SparseList& list, float* out);

/// Where `list`, which a threshold above 0 selected, has more than `most` entries and its
/// `smallest` passes: times `factor`, up to five times, until that does not.
void raise_thresholds(const Stream& stream, const UnitSpec& spec, const Room& most,
                      const SparseList& list, const float* smallest, double factor,
                      float* thresholds);

/// Where a threshold is 0, or everywhere if `all`, it becomes the smallest.
void set_thresholds(const Stream& stream, const UnitSpec& spec, const float* smallest, bool all,
                    float* thresholds);

/// After counts by the thresholds, `stride` words apart: divided by `factor` where fewer than 2k/3
/// passed, times it where more than `most` did.
void follow_thresholds(const Stream& stream, const UnitSpec& spec, const Room& most,
                       const int64_t* count, int64_t stride, double factor, float* thresholds);

}  // namespace wisp
