// Thresholds of magnitude that are measured now and then and in between follow the counts that they
// let pass: a field's is scaled when its count leaves [2k/3, 5k/4). One float a field in device
// memory, 0 before it was ever measured. Part of Ok-Topk (oktopk.cpp).
#pragma once

#include "compression/sparse_list.h"

namespace wisp {

/// out[f] = the smallest magnitude of field f's entries, 0 if there are none. `scratch` has a float
/// a field.
void measure_list(const Stream& stream, const UnitSpec& spec, const Room& room,
                  const SparseList& list, float* out, float* scratch);

/// thresholds = sum / workers
void adopt_thresholds(const Stream& stream, const UnitSpec& spec, const float* sum, int workers,
                      float* thresholds);

/// After counts by the thresholds, of what a list with room for 5k/4 got or of all of it: scales
/// them. Where a threshold is 0, or everywhere if `due`, takes what was `measured`; nothing does if
/// that is null.
void follow_thresholds(const Stream& stream, const UnitSpec& spec, double ratio,
                       const int64_t* count, int64_t stride, const float* measured, bool due,
                       float* thresholds);

}  // namespace wisp
