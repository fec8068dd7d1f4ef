#include "compression/sparse/sparse_list.h"

#include <algorithm>

#include "compression/slices.h"
#include "core/loops/parallel_rows.h"

namespace wisp {
namespace sparse {
namespace {

/// A slice for the kernel that adds a list's entries to it; an item is several entries.
struct AddRow {
  int64_t first_item, field;
  int64_t position, numel, offset;
};

struct AddEntries {
  struct Shared {};
  SparseList list, among;
  bool common;  // add only the entries that `among` has too
  float weight;
  float* arena;
  RowTable<AddRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const AddRow& row = table.row_of(item);
    const Range range = list.range[row.field];
    const uint32_t* position = list.position + range.begin;
    const float* value = list.value + range.begin;
    const int64_t from =
        count_below(position, range.count, row.position) + (item - row.first_item) * select::kTile;
    const int64_t end = count_below(position, range.count, row.position + row.numel);
    if (from >= end) return;
    team.each(end - from < select::kTile ? end - from : select::kTile, [&](int64_t i) {
      const uint32_t here = position[from + i];
      const int64_t at = here - row.position;
      if (at < 0 || row.numel <= at || (common && !in_among(row.field, here))) return;
      arena[row.offset + at] += weight * value[from + i];
    });
  }

 private:
  WISP_HD bool in_among(int64_t field, uint32_t position) const {
    const Range range = among.range[field];
    const uint32_t* first = among.position + range.begin;
    const int64_t below = count_below(first, range.count, position);
    return below < range.count && first[below] == position;
  }
};

constexpr int64_t kMergeTile = 512;  // entries per team in a merge

/// A field for the kernels that merge lists.
struct MergeRow {
  int64_t first_item, field;
  int64_t begin, room;  // first entry and capacity of the sum
  int64_t both;         // index of its first entry during the merge
};

/// The entries of two lists during a merge.
struct Merging {
  uint32_t* position;
  float* value;

  Merging(Cursor& cursor, int64_t entries)
      : position(cursor.take<uint32_t>(entries)), value(cursor.take<float>(entries)) {}
};

/// Puts entries of two lists in their places of the merged order. At equal positions, a's comes
/// first. Items are tiles of both lists; a's entries come before b's.
struct Interleave {
  struct Shared {};
  SparseList a, b;
  Merging scratch;
  RowTable<MergeRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const MergeRow& row = table.row_of(item);
    const Range of_a = a.range[row.field], of_b = b.range[row.field];
    const int64_t from = (item - row.first_item) * kMergeTile;
    const int64_t left = of_a.count - from;
    const int64_t of_tile = left < 0 ? 0 : left < kMergeTile ? left : kMergeTile;
    place(team, row, a, {of_a.begin + from, of_tile}, from, b, of_b, 0);
    const int64_t first = of_tile > 0 ? 0 : -left;  // first entry of b in this tile
    const int64_t rest = of_b.count - first;
    const int64_t room = kMergeTile - of_tile;
    place(team, row, b,
          {of_b.begin + first, rest < 0      ? 0
                               : rest < room ? rest
                                             : room},
          first, a, of_a, 1);
  }

 private:
  /// `before`: number of entries of the same list before this range.
  WISP_HD void place(const Team& team, const MergeRow& row, const SparseList& from,
                     const Range& range, int64_t before, const SparseList& other,
                     const Range& other_range, int64_t ties) const {
    uint32_t* position = scratch.position + row.both + before;
    float* value = scratch.value + row.both + before;
    team.each(range.count, [&](int64_t i) {
      const uint32_t here = from.position[range.begin + i];
      const int64_t at =
          i + count_below(other.position + other_range.begin, other_range.count, here + ties);
      position[at] = here;
      value[at] = from.value[range.begin + i];
    });
  }
};

/// Joins equal neighbours of the merged order into one entry.
struct JoinEqual {
  struct Shared {};
  SparseList a, b, into;
  Merging scratch;
  RowTable<MergeRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, Shared&) const {
    const MergeRow& row = table.row[item];
    const uint32_t* position = scratch.position + row.both;
    const float* value = scratch.value + row.both;
    const int64_t both = a.range[row.field].count + b.range[row.field].count;
    const int64_t entries = team.select(
        both, [&](int64_t i) { return i == 0 || position[i] != position[i - 1]; },
        [&](int64_t at, int64_t i) {
          if (at >= row.room) return;
          const bool twice = i + 1 < both && position[i + 1] == position[i];
          into.position[row.begin + at] = position[i];
          into.value[row.begin + at] = twice ? value[i] + value[i + 1] : value[i];
        });
    team.once([&] {
      into.range[row.field] = {row.begin, entries < row.room ? entries : row.room};
    });
  }
};

/// A field for the kernel that splits a list.
struct SplitRow {
  int64_t first_item, field;
  int64_t most, k;
  int64_t kept, rest;  // index of the first entry in each list
  select::Order order;
};

struct Split {
  using Shared = select::Digits;
  SparseList from, kept, rest;
  bool with_rest;
  uint32_t* magnitudes;
  RowTable<SplitRow> table = {};
  WISP_HD void operator()(const Team& team, int64_t item, select::Digits& digits) const {
    const SplitRow& row = table.row[item];
    const int64_t f = row.field;
    const Range range = from.range[f];
    const int64_t count = range.count < row.most ? range.count : row.most;
    const uint32_t* position = from.position + range.begin;
    const float* value = from.value + range.begin;
    uint32_t* magnitude = magnitudes + row.rest;
    team.fill(count, magnitude, [&](int64_t i) { return magnitude_bits(value[i]); });
    uint64_t bound = 0;
    if (count > row.k) {
      bound = select::bound_of_largest(team, digits, row.k, 0, [&](const auto& digit) {
        team.histogram(count, digits.bins,
                       [&](int64_t i) { return digit(row.order(magnitude[i], position[i])); });
      });
    }
    const auto part = [&](bool above, const SparseList& into, int64_t begin, int64_t room) {
      const int64_t entries = team.select(
          count,
          [&](int64_t i) { return (row.order(magnitude[i], position[i]) >= bound) == above; },
          [&](int64_t at, int64_t i) {
            if (at >= room) return;
            into.position[begin + at] = position[i];
            into.value[begin + at] = value[i];
          });
      team.once([&] { into.range[f] = {begin, entries < room ? entries : room}; });
    };
    part(true, kept, row.kept, row.k);
    if (with_rest) part(false, rest, row.rest, row.most);
  }
};

struct Pass {
  struct Shared {};
  SparseList from;
  const float* threshold;
  SparseList into;
  WISP_HD void operator()(const Team& team, int64_t f, Shared&) const {
    const Range range = from.range[f];
    const uint32_t bound = magnitude_bits(threshold[f]);
    const int64_t count = team.select(
        range.count,
        [&](int64_t i) { return magnitude_bits(from.value[range.begin + i]) >= bound; },
        [&](int64_t at, int64_t i) {
          into.position[range.begin + at] = from.position[range.begin + i];
          into.value[range.begin + at] = from.value[range.begin + i];
        });
    team.once([&] { into.range[f] = {range.begin, count}; });
  }
};

struct CountEntries {
  const Range* range;
  bool add;
  int64_t* count;
  WISP_HD void operator()(int64_t f) const { count[f] = range[f].count + (add ? count[f] : 0); }
};

}  // namespace
}  // namespace sparse

using namespace sparse;

int64_t Room::of(const Field& field) const {
  const int64_t kept = kept_count(ratio, field.numel) * times / over;
  const int64_t entries = std::min(copies * std::max(kept, int64_t{1}) + more, field.numel);
  return escape > 0 ? entries + (field.numel - entries) / escape : entries;
}

int64_t Room::of(const UnitSpec& spec) const {
  return sum_of_fields(spec, [this](const Field& field) { return of(field); });
}

SparseList::SparseList(Cursor& cursor, int64_t fields, int64_t entries)
    : range(cursor.take<Range>(fields)),
      position(cursor.take<uint32_t>(entries)),
      value(cursor.take<float>(entries)) {}

int64_t select_list_bytes(const UnitSpec& spec, const Room& room, Selection::Kind kind) {
  select::Sizes sizes;
  for (const Field& field : spec.fields) {
    const int64_t k = room.of(field);
    sizes.add(field.slices, select::Extent(select::numel_of(field.slices), k, kind));
  }
  return layout_bytes<select::Scratch>(sizes);
}

void add_list(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
              float weight, float* arena, const SparseList* among) {
  const AddEntries adds{list, among ? *among : list, among != nullptr, weight, arena};
  parallel_rows(stream, adds, select::kTile, [&](const auto& put) {
    each_slice(spec, [&](size_t f, const Slice& slice, int64_t position) {
      const int64_t most = std::min(room.of(spec.fields[f]), slice.numel);
      put({0, static_cast<int64_t>(f), position, slice.numel, slice.offset},
          select::tiles_of(most));
    });
  });
}

void clear_fields(const Stream& stream, const UnitSpec& spec, const Tensor& arena) {
  parallel_for_ranges(stream, ranges_of(spec), ZeroAll<float>{arena.data<float>()});
}

void merge_lists(const Stream& stream, const UnitSpec& spec, const SparseList& a,
                 const Room& a_room, const SparseList& b, const Room& b_room,
                 const SparseList& into, const Room& room, std::byte* memory) {
  const int64_t entries = a_room.of(spec) + b_room.of(spec);
  const auto scratch = lay_out<Merging>(memory, entries);
  const auto each_row = [&](bool tiles) {
    return [&, tiles](const auto& put) {
      MergeRow row{};
      for (const Field& field : spec.fields) {
        const int64_t most = a_room.of(field) + b_room.of(field);
        row.room = room.of(field);
        put(row, tiles ? (most + kMergeTile - 1) / kMergeTile : 1);
        ++row.field;
        row.begin += row.room;
        row.both += most;
      }
    };
  };
  parallel_rows(stream, Interleave{a, b, scratch}, kMergeTile, each_row(true));
  parallel_rows(stream, JoinEqual{a, b, into, scratch}, entries / std::ssize(spec.fields),
                each_row(false));
}

int64_t merge_lists_bytes(const UnitSpec& spec, const Room& a, const Room& b) {
  return layout_bytes<Merging>(a.of(spec) + b.of(spec));
}

void split_list(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                const SparseList& from, const Room& from_room, const SparseList& kept,
                const Room& room, const SparseList* rest, std::byte* memory) {
  const Split split{from, kept, rest ? *rest : kept, rest != nullptr,
                    reinterpret_cast<uint32_t*>(memory)};
  const int64_t elements = from_room.of(spec) / std::ssize(spec.fields);
  parallel_rows(stream, split, elements, [&](const auto& put) {
    SplitRow row{};
    for (const Field& field : spec.fields) {
      row.most = from_room.of(field);
      row.k = std::min(room.of(field), row.most);
      row.order = {info.random(field).below(0, static_cast<uint32_t>(field.numel)), field.numel};
      put(row, 1);
      ++row.field;
      row.kept += room.of(field);
      row.rest += row.most;
    }
  });
}

int64_t split_list_bytes(const UnitSpec& spec, const Room& from) {
  return (4 * from.of(spec) + 7) / 8 * 8;
}

void pass_list(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& from,
               const float* thresholds, const SparseList& into) {
  const auto fields = std::ssize(spec.fields);
  parallel_teams(stream, fields, Pass{from, thresholds, into}, room.of(spec) / fields);
}

void clear_list(const Stream& stream, const UnitSpec& spec, const SparseList& list) {
  parallel_for(stream, std::ssize(spec.fields), ZeroAll<Range>{list.range});
}

void count_list(const Stream& stream, const UnitSpec& spec, const SparseList& list, bool add,
                int64_t* count) {
  parallel_for(stream, std::ssize(spec.fields), CountEntries{list.range, add, count});
}

}  // namespace wisp
