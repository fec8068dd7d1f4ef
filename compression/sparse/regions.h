// Regions: each rank owns a range of each field's positions, such that the workers' selected
// positions are spread about evenly. 15 cuts of a field divide those positions into sixteenths (the
// mean over workers). Borders for any number of ranks are interpolated between cuts. Cuts are i64
// words in device memory; zeros, before the first balancing, stand for even regions. Part of
// Ok-Topk (oktopk.cpp). Used by the comm thread.
#pragma once

#include <span>

#include "compression/sparse/sparse_list.h"

namespace wisp {

constexpr int64_t kCutWords = 15;

/// One worker's proposal of cuts, from its selected positions. It repeats the current cuts of a
/// field if the worker selected too few entries, or if `counts` is false.
void propose_cuts(const Stream& stream, const UnitSpec& spec, const SparseList& list, bool counts,
                  const int64_t* cuts, int64_t* out);
/// cuts = sum / summands, forced to ascend and to stay within the field.
void adopt_cuts(const Stream& stream, const UnitSpec& spec, const int64_t* sum, int summands,
                int64_t* cuts);

/// Throws Error unless cuts from a file, on the host, are as adopt_cuts() leaves them: they ascend
/// within their field.
void check_cuts(std::span<const int64_t> numel_of_field, const Tensor& cuts);

/// Copies at most part_room's share of each region of `from` to `into`, which has the same room. If
/// a region has more, entries are taken in cyclic order from a drawn one. `part` gets the range of
/// each region in `into`, by rank, then by field.
void take_parts(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                const SparseList& from, const Room& room, const Room& part_room,
                const int64_t* cuts, const SparseList& into, Range* part);

}  // namespace wisp
