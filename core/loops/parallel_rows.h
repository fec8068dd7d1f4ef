// Teams over the rows of a table that travels in the kernel's argument: nothing has to be written
// before, for the few fields or ranges that most launches have.
#pragma once

#include "core/loops/device_table.h"
#include "core/loops/parallel_teams.h"

namespace wisp {

/// As many rows as a kernel's argument has room for. Row has a member first_item, its first item of
/// those of all rows. It has no padding, and a kernel's table is its last member: in and behind
/// arrays g++ 12 clears padding where it is not.
template <class Row>
struct RowTable {
  static constexpr int64_t kMost = 3600 / sizeof(Row);  // an argument has 4 KB
  int64_t count = 0, items = 0;
  Row row[kMost]{};

  WISP_HD const Row& row_of(int64_t item) const {
    return row[wisp::row_of(item, count, [this](int64_t at) { return row[at].first_item; })];
  }
};

/// A range of elements, cut into chunks that are items.
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

/// Launches the kernel that kernel_of(table) gives, over the items of the table, for as few tables
/// as hold all rows: each_row(put) calls put(row, items) for each. `elements` is as for
/// parallel_teams.
template <class Row, class EachRow, class KernelOf>
void parallel_rows(const Stream& stream, const EachRow& each_row, const KernelOf& kernel_of,
                   int64_t elements) {
  RowTable<Row> table;
  const auto launch = [&] {
    if (table.items > 0) parallel_teams(stream, table.items, kernel_of(table), elements);
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

/// A kernel of parallel_for, over a row's range.
template <class Kernel>
struct OverRanges {
  struct Shared {};
  Kernel kernel;
  RowTable<RangeRow> table;
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const RangeRow& row = table.row_of(item);
    const int64_t from = row.from(item);
    team.each(row.count(item), [&](int64_t i) { kernel(from + i); });
  }
};

/// kernel(i) for each i of the ranges: each_range(put) calls put(begin, end) for each.
template <class EachRange, class Kernel>
void parallel_for_ranges(const Stream& stream, const EachRange& each_range, const Kernel& kernel) {
  parallel_rows<RangeRow>(
      stream,
      [&](const auto& put) {
        each_range([&](int64_t begin, int64_t end) {
          const RangeRow row{begin, end};
          put(row, row.chunks());
        });
      },
      [&](const auto& table) {
        return OverRanges<Kernel>{kernel, table};
      },
      RangeRow::kChunk);
}

}  // namespace wisp
