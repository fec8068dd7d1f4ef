// Ranges of the arenas with one update rule, over which an optimizer's loops run. For the compute
// thread.
#pragma once

#include <span>
#include <vector>

#include "core/loops/parallel_rows.h"
#include "core/parameter.h"
#include "core/train/update_rule.h"

namespace wisp {

/// Neighbouring segments with one rule, including the padding between them, which stays zero.
struct UpdateRange {
  int64_t begin = 0, end = 0;
  int first = 0;  // id of the first segment
  UpdateRule rule = UpdateRule::gradient;
  bool decay = false;
};

/// The trained segments as ranges, in their order. Segments with different `number`, if given, are
/// in different ranges. Throws Error unless there is one rule per segment.
std::vector<UpdateRange> update_ranges(const FlatParameters& parameters,
                                       std::span<const UpdateRule> rules,
                                       std::span<const int64_t> number = {});

/// UpdateRule::update, common to all optimizers.
template <class T>
struct SubtractUpdate {
  T* weight;
  const T* gradient;
  T lr;
  WISP_HD void operator()(int64_t i) const { weight[i] -= lr * gradient[i]; }
};

/// Launches the kernel `step` over the chunks of all ranges. row_of(range) returns a range's row, a
/// RangeRow with the data for its elements; begin and end are set here.
template <class Step, class RowOf>
void update_all(const Stream& stream, std::span<const UpdateRange> ranges, const Step& step,
                const RowOf& row_of) {
  parallel_rows(stream, step, RangeRow::kChunk, [&](const auto& put) {
    for (const UpdateRange& range : ranges) {
      auto row = row_of(range);
      row.begin = range.begin;
      row.end = range.end;
      put(row, row.chunks());
    }
  });
}

}  // namespace wisp
