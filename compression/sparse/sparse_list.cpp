#include "compression/sparse/sparse_list.h"

#include <algorithm>

#include "core/train/norm.h"

namespace wisp {
namespace sparse {
namespace {

struct AddEntries {
  SparseList list;
  const Range* range;
  float weight;
  int64_t begin, end;  // field positions of the slice
  float* into;         // the slice
  WISP_HD void operator()(int64_t c) const {
    const Span span(*range, c);
    if (span.from >= span.to || list.position[span.to - 1] < begin ||
        end <= list.position[span.from])
      return;
    for (int64_t j = span.from; j < span.to; ++j) {
      const int64_t position = list.position[j];
      if (begin <= position && position < end) into[position - begin] += weight * list.value[j];
    }
  }
};

struct AddCommon {
  SparseList list, among;
  const Range *range, *among_range;
  float weight;
  int64_t begin, end;  // field positions of the slice
  float* into;         // the slice
  WISP_HD void operator()(int64_t i) const {
    const int64_t at = range->begin + i;
    const int64_t position = list.position[at];
    if (position < begin || end <= position) return;
    const uint32_t* first = among.position + among_range->begin;
    const int64_t below = count_below(first, among_range->count, position);
    if (below < among_range->count && first[below] == position)
      into[position - begin] += weight * list.value[at];
  }
};

/// An entry's place in the merged order of two lists; at equal positions a's comes first.
struct Interleave {
  SparseList from, other;
  const Range *range, *other_range;
  bool first;  // `from` is a
  uint32_t* position;
  float* value;
  WISP_HD void operator()(int64_t i) const {
    const int64_t at = range->begin + i;
    const uint32_t here = from.position[at];
    const int64_t bound = first ? int64_t{here} : int64_t{here} + 1;
    const int64_t before =
        count_below(other.position + other_range->begin, other_range->count, bound);
    position[i + before] = here;
    value[i + before] = from.value[at];
  }
};

struct Total {
  const Range *a, *b;
  int64_t* count;
  WISP_HD void operator()() const { *count = a->count + b->count; }
};

/// The parts of scratch while two fields of `both` entries together are merged.
struct Merging {
  int64_t* count;
  uint32_t* position;
  float* value;
  std::byte* masks;

  Merging(Cursor& cursor, int64_t both)
      : count(cursor.take<int64_t>(1)),
        position(cursor.take<uint32_t>(both)),
        value(cursor.take<float>(both)),
        masks(cursor.take<std::byte>(select_scratch_bytes(both))) {}
};

/// Equal neighbours become one.
struct Fold {
  const uint32_t* position;
  const float* value;
  const int64_t* count;
  SparseList into;
  int64_t begin, capacity;
  WISP_HD bool operator()(int64_t i) const { return i == 0 || position[i] != position[i - 1]; }
  WISP_HD void emit(int64_t at, int64_t i) const {
    const bool twice = i + 1 < *count && position[i + 1] == position[i];
    into.position[begin + at] = position[i];
    into.value[begin + at] = twice ? value[i] + value[i + 1] : value[i];
  }
};

/// A list never holds more than it has room for, whatever the bytes it was read from.
struct Limit {
  Range* range;
  int64_t room;
  WISP_HD void operator()() const {
    if (range->count > room) range->count = room;
  }
};

/// What a kernel knows of a field whose list is split.
struct SplitRow {
  int64_t most, k;
  int64_t kept, rest;  // where its entries begin
  select::Order order;
};

/// The parts of scratch meanwhile.
struct Splitting {
  SplitRow* row;
  uint32_t* key;

  Splitting(Cursor& cursor, int64_t fields, int64_t entries)
      : row(cursor.take<SplitRow>(fields)), key(cursor.take<uint32_t>(entries)) {}
};

struct Split {
  using Shared = select::Digits;
  SparseList from, kept, rest;
  bool with_rest;
  Splitting scratch;
  WISP_HD void operator()(const Team& team, int64_t f, select::Digits& digits) const {
    const SplitRow row = scratch.row[f];
    const Range range = from.range[f];
    const int64_t count = range.count < row.most ? range.count : row.most;
    const uint32_t* position = from.position + range.begin;
    const float* value = from.value + range.begin;
    uint32_t* key = scratch.key + row.rest;
    team.each(count, [&](int64_t i) { key[i] = magnitude_bits(value[i]); });
    uint64_t bound = 0;
    if (count > row.k) {
      bound = select::bound_of_largest(team, digits, row.k, 0, [&](const auto& digit) {
        team.histogram(count, digits.bins,
                       [&](int64_t i) { return digit(row.order(key[i], position[i])); });
      });
    }
    const auto part = [&](bool above, const SparseList& into, int64_t begin, int64_t room) {
      const int64_t entries = team.select(
          count, [&](int64_t i) { return (row.order(key[i], position[i]) >= bound) == above; },
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
  SparseList from;
  const Range* range;
  const float* threshold;
  SparseList into;
  int64_t begin;
  WISP_HD bool operator()(int64_t i) const {
    return magnitude_bits(from.value[range->begin + i]) >= magnitude_bits(*threshold);
  }
  WISP_HD void emit(int64_t at, int64_t i) const {
    into.position[begin + at] = from.position[range->begin + i];
    into.value[begin + at] = from.value[range->begin + i];
  }
};

struct CountEntries {
  const Range* range;
  bool add;
  int64_t* count;
  WISP_HD void operator()() const { *count = range->count + (add ? *count : 0); }
};

}  // namespace
}  // namespace sparse

using namespace sparse;

int64_t Room::of(const Field& field) const {
  const int64_t kept = kept_count(ratio, field.numel) * times / over;
  const int64_t entries = std::min(copies * std::max(kept, int64_t{1}), field.numel);
  return escape > 0 ? entries + (field.numel - entries) / escape : entries;
}

int64_t Room::of(const UnitSpec& spec) const {
  int64_t entries = 0;
  for (const Field& field : spec.fields) entries += of(field);
  return entries;
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
              float weight, float* arena) {
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const Field& field = spec.fields[f];
    int64_t begin = 0;
    for (const Slice& slice : field.slices) {
      const int64_t end = begin + slice.numel;
      parallel_for(stream, chunks_of(room.of(field)),
                   AddEntries{list, list.range + f, weight, begin, end, arena + slice.offset});
      begin = end;
    }
  }
}

void add_common(const Stream& stream, const UnitSpec& spec, const Room& room,
                const SparseList& list, const SparseList& among, float weight, float* arena) {
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const Field& field = spec.fields[f];
    const Range* range = list.range + f;
    int64_t begin = 0;
    for (const Slice& slice : field.slices) {
      const int64_t end = begin + slice.numel;
      parallel_for_counted(
          stream, &range->count, room.of(field),
          AddCommon{list, among, range, among.range + f, weight, begin, end, arena + slice.offset});
      begin = end;
    }
  }
}

void clear_fields(const Stream& stream, const UnitSpec& spec, const Tensor& arena) {
  for (const Field& field : spec.fields)
    for (const Slice& slice : field.slices)
      fill_zero(stream, arena.slice(slice.offset, {slice.numel}));
}

void merge_lists(const Stream& stream, const UnitSpec& spec, const SparseList& a,
                 const Room& a_room, const SparseList& b, const Room& b_room,
                 const SparseList& into, const Room& room, std::byte* memory) {
  int64_t begin = 0;
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const Field& field = spec.fields[f];
    const int64_t both = a_room.of(field) + b_room.of(field);
    const auto [count, position, value, masks] = lay_out<Merging>(memory, both);
    const Range *of_a = a.range + f, *of_b = b.range + f;
    Range* sum = into.range + f;
    run_once(stream, Total{of_a, of_b, count});
    parallel_for_counted(stream, &of_a->count, a_room.of(field),
                         Interleave{a, b, of_a, of_b, true, position, value});
    parallel_for_counted(stream, &of_b->count, b_room.of(field),
                         Interleave{b, a, of_b, of_a, false, position, value});
    run_once(stream, SetRange{sum, {begin, 0}});
    parallel_select_counted(stream, count, both,
                            Fold{position, value, count, into, begin, room.of(field)}, &sum->count,
                            masks);
    run_once(stream, Limit{sum, room.of(field)});
    begin += room.of(field);
  }
}

int64_t merge_lists_bytes(const UnitSpec& spec, const Room& a, const Room& b) {
  int64_t bytes = 0;
  for (const Field& field : spec.fields)
    bytes = std::max(bytes, layout_bytes<Merging>(a.of(field) + b.of(field)));
  return bytes;
}

void split_list(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                const SparseList& from, const Room& from_room, const SparseList& kept,
                const Room& room, const SparseList* rest, std::byte* memory) {
  const auto fields = std::ssize(spec.fields);
  const auto scratch = lay_out<Splitting>(memory, fields, from_room.of(spec));
  TableWriter table(stream, scratch.row);
  SplitRow row{};
  for (const Field& field : spec.fields) {
    const Philox random(info.seed, static_cast<uint64_t>(info.step), field.key);
    row.most = from_room.of(field);
    row.k = std::min(room.of(field), row.most);
    row.order = {random.below(0, static_cast<uint32_t>(field.numel)), field.numel};
    table.put(row);
    row.kept += room.of(field);
    row.rest += row.most;
  }
  table.finish();
  parallel_teams(stream, fields, Split{from, kept, rest ? *rest : kept, rest != nullptr, scratch},
                 row.rest / fields);
}

int64_t split_list_bytes(const UnitSpec& spec, const Room& from) {
  return layout_bytes<Splitting>(std::ssize(spec.fields), from.of(spec));
}

void pass_list(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& from,
               const float* thresholds, const SparseList& into, std::byte* scratch) {
  clear_list(stream, spec, room, into);
  int64_t begin = 0;
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    const int64_t most = room.of(spec.fields[f]);
    const Range* range = from.range + f;
    parallel_select_counted(stream, &range->count, most,
                            Pass{from, range, thresholds + f, into, begin}, &into.range[f].count,
                            scratch);
    begin += most;
  }
}

int64_t pass_list_bytes(const UnitSpec& spec, const Room& room) {
  int64_t bytes = 0;
  for (const Field& field : spec.fields)
    bytes = std::max(bytes, select_scratch_bytes(room.of(field)));
  return bytes;
}

void clear_list(const Stream& stream, const UnitSpec& spec, const Room& room,
                const SparseList& list) {
  int64_t begin = 0;
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    run_once(stream, SetRange{list.range + f, {begin, 0}});
    begin += room.of(spec.fields[f]);
  }
}

void count_list(const Stream& stream, const UnitSpec& spec, const SparseList& list, bool add,
                int64_t* count) {
  for (size_t f = 0; f < spec.fields.size(); ++f)
    run_once(stream, CountEntries{list.range + f, add, count + f});
}

}  // namespace wisp
