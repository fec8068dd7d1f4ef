// What an optimizer's loops run over: stretches of the arenas that are treated alike.
#pragma once

#include <span>
#include <vector>

#include "core/loops/device_table.h"
#include "core/loops/parallel_teams.h"
#include "core/parameter.h"
#include "core/train/update_rule.h"

namespace wisp {

/// Neighbouring segments of one rule, with the padding between them (which stays zero).
struct UpdateRange {
  int64_t begin = 0, end = 0;
  int first = 0;  // segment
  UpdateRule rule = UpdateRule::gradient;
  bool decay = false;
};

/// The trained segments as ranges, in their order; those that differ in `number`, if it is given,
/// are apart. Throws Error unless there is a rule for each.
std::vector<UpdateRange> update_ranges(const FlatParameters& parameters,
                                       std::span<const UpdateRule> rules,
                                       std::span<const int64_t> number = {});

/// A range as a kernel sees it, cut into chunks that are numbered through all ranges.
struct UpdateRow {
  static constexpr int64_t kChunk = 1 << 13;
  int64_t begin, end, first_chunk;

  WISP_HD int64_t from(int64_t chunk) const { return begin + (chunk - first_chunk) * kChunk; }
  WISP_HD int64_t count(int64_t chunk) const {
    const int64_t left = end - from(chunk);
    return left < kChunk ? left : kChunk;
  }
};

/// UpdateRule::update, which is the same for all optimizers.
template <class T>
struct SubtractUpdate {
  T* weight;
  const T* gradient;
  T lr;
  WISP_HD void operator()(int64_t i) const { weight[i] -= lr * gradient[i]; }
};

/// As many ranges as a kernel's argument has room for: an optimizer's kernel has one, and row_of
/// says how the elements of a chunk are treated. Row is an UpdateRow of which all bytes are
/// members': g++ 12 clears padding in and behind arrays where it is not.
template <class Row>
struct UpdateTable {
  static constexpr int64_t kMost = 3600 / sizeof(Row);  // an argument has 4 KB
  int64_t count = 0, chunks = 0;
  Row row[kMost]{};

  WISP_HD const Row& row_of(int64_t chunk) const {
    return row[wisp::row_of(chunk, count, [this](int64_t at) { return row[at].first_chunk; })];
  }
};

/// Launches the kernel that step(table) gives, with all ranges in as few tables as hold them;
/// row_of(range) gives a range's row, whose chunks are set here.
template <class Row, class RowOf, class StepOf>
void update_all(const Stream& stream, std::span<const UpdateRange> ranges, const RowOf& row_of,
                const StepOf& step) {
  while (!ranges.empty()) {
    UpdateTable<Row> table;
    for (; table.count < table.kMost && !ranges.empty(); ranges = ranges.subspan(1)) {
      const UpdateRange& range = ranges.front();
      Row& row = table.row[table.count++];
      row = row_of(range);
      row.begin = range.begin;
      row.end = range.end;
      row.first_chunk = table.chunks;
      table.chunks += (range.end - range.begin + row.kChunk - 1) / row.kChunk;
    }
    parallel_teams(stream, table.chunks, step(table), UpdateRow::kChunk);
  }
}

}  // namespace wisp
