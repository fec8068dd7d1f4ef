// Teams over the rows of a table in the kernel's argument. The table needs no memory and no write
// before the launch; it suits launches of few fields or ranges. Any thread that may use the stream
// may call.
#pragma once

#include <type_traits>

#include "core/loops/device_table.h"
#include "core/loops/parallel_teams.h"

namespace wisp {

/// A table with as many rows as fit a kernel's argument. Row has a member first_item, its first
/// item in the numbering over all rows. Row has no padding, and a kernel's `table` is its last
/// member: g++ 12 clears padding wrongly in and after arrays.
template <class Row>
struct RowTable {
  static constexpr int64_t kMost = 3600 / sizeof(Row);  // an argument has 4 KB
  int64_t count = 0, items = 0;
  Row row[kMost]{};

  WISP_HD const Row& row_of(int64_t item) const {
    return row[wisp::row_of(item, count, [this](int64_t at) { return row[at].first_item; })];
  }
};

/// A range of elements, cut into chunks. A chunk is an item.
struct RangeRow {
  static constexpr int64_t kChunk = 1 << 13;
  int64_t begin = 0, end = 0, first_item = 0;

  int64_t chunks() const { return (end - begin + kChunk - 1) / kChunk; }
  WISP_HD int64_t from(int64_t item) const { return begin + (item - first_item) * kChunk; }
  WISP_HD int64_t count(int64_t item) const {
    const int64_t left = end - from(item);
    return left < kChunk ? left : kChunk;
  }
};

/// Launches the kernel over the items of its table, for as few tables as hold all rows.
/// each_row(put) calls put(row, items) for each row. `elements` is as for parallel_teams.
template <class Kernel, class EachRow>
void parallel_rows(const Stream& stream, Kernel kernel, int64_t elements, const EachRow& each_row) {
  auto& table = kernel.table;
  using Row = std::remove_extent_t<decltype(table.row)>;
  const auto launch = [&] {
    if (table.items > 0) parallel_teams(stream, table.items, kernel, elements);
    table.count = table.items = 0;
  };
  each_row([&](Row row, int64_t items) {
    if (table.count == table.kMost) launch();
    row.first_item = table.items;
    table.row[table.count++] = row;
    table.items += items;
  });
  launch();
}

/// A kernel of parallel_for that runs over a row's range.
template <class Kernel>
struct OverRanges {
  struct Shared {};
  Kernel kernel;
  RowTable<RangeRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const RangeRow& row = table.row_of(item);
    const int64_t from = row.from(item);
    team.each(row.count(item), [&](int64_t i) { kernel(from + i); });
  }
};

/// Calls kernel(i) for each i of the ranges. each_range(put) calls put(begin, end) for each range.
template <class EachRange, class Kernel>
void parallel_for_ranges(const Stream& stream, const EachRange& each_range, const Kernel& kernel) {
  parallel_rows(stream, OverRanges<Kernel>{kernel}, RangeRow::kChunk, [&](const auto& put) {
    each_range([&](int64_t begin, int64_t end) {
      const RangeRow row{begin, end};
      put(row, row.chunks());
    });
  });
}

}  // namespace wisp
