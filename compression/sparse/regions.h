// Regions: every rank owns a range of each field's positions, such that the workers' selected
// positions fall about evenly into them. Borders follow cuts, the workers' mean sixteenths of what
// they selected, so that they fit any number of workers: kCutWords i64 words a field in device
// memory, zeros (even regions) before they were ever balanced. Part of Ok-Topk (oktopk.cpp).
#pragma once

#include "compression/sparse/sparse_list.h"

namespace wisp {

constexpr int64_t kCutWords = 15;

/// One worker's cuts, from what it selected; those that stand for a field where it selected too
/// little to say, or nothing of which (`counts` false) it may speak.
void propose_cuts(const Stream& stream, const UnitSpec& spec, const SparseList& list, bool counts,
                  const int64_t* cuts, int64_t* out);
/// cuts = sum / workers; ascending and within the field whatever the sums are.
void adopt_cuts(const Stream& stream, const UnitSpec& spec, const int64_t* sum, int workers,
                int64_t* cuts);

/// Copies at most part_room's share of each region of `from` to `into`, which has the same room, in
/// cyclic order from a drawn one where there is more. `part` says which of it are a region's: by
/// rank, then by field.
void take_parts(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                const SparseList& from, const Room& room, const Room& part_room,
                const int64_t* cuts, const SparseList& into, Range* part);

}  // namespace wisp
