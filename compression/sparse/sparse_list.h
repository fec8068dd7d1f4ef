// Sparse vectors in device memory: for each field of a unit, the positions and values of some of
// its elements. Sparse methods select into a list, pack it (pack.h), read the lists of others and
// add them up. Every operation is work on a stream, and no count is read back. Used by the comm
// thread.
#pragma once

#include "compression/slices.h"
#include "compression/sparse/select.h"
#include "compression/wire_value.h"

namespace wisp {

/// The capacity of a field's list: min(copies · max(k · times / over, 1) + more, n) entries for n
/// elements, with k = kept_count(ratio, n); plus one for each `escape` elements without an entry.
struct Room {
  double ratio = 1.0;
  int64_t times = 1, over = 1;
  int64_t copies = 1;
  int64_t more = 0;
  int64_t escape = 0;  // 0: no escapes

  int64_t of(const Field& field) const;
  int64_t of(const UnitSpec& spec) const;
};

struct SparseList {
  Range* range;        // indexed by field
  uint32_t* position;  // field positions, ascending
  float* value;

  SparseList(Cursor& cursor, int64_t fields, int64_t entries);
};

namespace sparse {

constexpr int64_t kChunk = 256;  // entries that a kernel call walks in order

WISP_HD inline int64_t chunks_of(int64_t count) { return (count + kChunk - 1) / kChunk; }

/// The entries of chunk `c` of a range.
struct Span {
  int64_t from, to;
  WISP_HD Span(const Range& range, int64_t c) : from(range.begin + c * kChunk), to(from + kChunk) {
    const int64_t end = range.begin + range.count;
    if (to > end) to = end;
  }
};

/// Number of `count` ascending positions that are below `bound`.
WISP_HD inline int64_t count_below(const uint32_t* position, int64_t count, int64_t bound) {
  // Without branches: a branch would be mispredicted half of the time.
  int64_t low = 0;
  for (; count > 1; count -= count / 2) {
    const int64_t half = count / 2;
    low += half * (position[low + half - 1] < bound);
  }
  return low + (count > 0 && position[low] < bound);
}

/// Reads the values of a tile of a field's entries, rounded to the wire format.
template <class Source, class Value>
struct TakeValues {
  struct Shared {};
  select::Fields<Source> fields;
  SparseList list;
  WISP_HD void operator()(const Team& team, int64_t tile, Shared&) const {
    const int64_t f =
        row_of(tile, fields.count, [this](int64_t at) { return fields.row[at].tile; });
    const select::FieldRow& field = fields.row[f];
    const Source source = fields.source[f];
    const Range range = list.range[f];
    const int64_t from = (tile - field.tile) * select::kTile;
    const int64_t left = range.count - from;
    const int64_t count = left < select::kTile ? left : select::kTile;
    const uint32_t* position = list.position + range.begin + from;
    float* values = list.value + range.begin + from;
    fields.each_slice(field, [&](const select::SliceRow& slice) {
      const int64_t first = count_below(position, count, slice.position);
      const int64_t end = count_below(position, count, slice.position + slice.numel);
      const int64_t shift = slice.offset - slice.position;
      team.each(end - first, [&](int64_t i) {
        const int64_t at = position[first + i] + shift;
        const auto value = static_cast<float>(to_wire<Value>(source.held(at)));
        values[first + i] = value;
        source.sent(at, value);
      });
    });
  }
};

}  // namespace sparse

/// Selects entries of each field and writes their positions to `list`, which has the room `room`.
/// `source_of(field)` gives the field's Source; take(i) is called once per element. Returns the
/// fields for take_values(), in scratch.
template <class SourceOf>
auto select_list(const Stream& stream, const UnitSpec& spec, const Room& room, const StepInfo& info,
                 const Selection& selection, const SourceOf& source_of, const SparseList& list,
                 std::byte* scratch) {
  const auto from = [&](int64_t f) {
    const Field& field = spec.fields[static_cast<size_t>(f)];
    return SelectFrom<decltype(source_of(field))>{field.slices, source_of(field), room.of(field),
                                                  info.random(field)};
  };
  const auto fields =
      select::write_fields(stream, std::ssize(spec.fields), from, selection.kind, scratch);
  select_entries(stream, fields, selection, list.position, list.range);
  return fields;
}
/// Bytes of scratch for select_list().
int64_t select_list_bytes(const UnitSpec& spec, const Room& room, Selection::Kind kind);

/// Reads the values of the selected entries from the sources, rounded to `format`, and reports each
/// to sent().
template <class Source>
void take_values(const Stream& stream, const select::Fields<Source>& fields, WireFormat format,
                 const SparseList& list) {
  dispatch_wire(format, [&]<class Value>(Value) {
    parallel_teams(stream, fields.tiles, sparse::TakeValues<Source, Value>{fields, list},
                   select::kTile);
  });
}

/// arena += weight · list in the unit's slices, exactly weight · value for each entry. With
/// `among`, adds only the entries whose positions it has too. Positions beyond a field are skipped.
void add_list(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& list,
              float weight, float* arena, const SparseList* among = nullptr);
/// Clears the unit's slices.
void clear_fields(const Stream& stream, const UnitSpec& spec, const Tensor& arena);

/// into = a + b; `into` may be `a`. `room`, `a_room` and `b_room` are the capacities of the three
/// lists. Entries that do not fit are dropped.
void merge_lists(const Stream& stream, const UnitSpec& spec, const SparseList& a,
                 const Room& a_room, const SparseList& b, const Room& b_room,
                 const SparseList& into, const Room& room, std::byte* scratch);
int64_t merge_lists_bytes(const UnitSpec& spec, const Room& a, const Room& b);

/// Moves the largest entries of each field, as many as `room` says, to `kept`. Equal entries are
/// taken in drawn cyclic order as in select.h. The others go to `rest`, which has from's room,
/// unless it is null.
void split_list(const Stream& stream, const UnitSpec& spec, const StepInfo& info,
                const SparseList& from, const Room& from_room, const SparseList& kept,
                const Room& room, const SparseList* rest, std::byte* scratch);
int64_t split_list_bytes(const UnitSpec& spec, const Room& from);

/// Copies the entries of magnitude thresholds[f] (device words) or more to `into`, which has the
/// room of `from`.
void pass_list(const Stream& stream, const UnitSpec& spec, const Room& room, const SparseList& from,
               const float* thresholds, const SparseList& into);

/// Makes the list empty.
void clear_list(const Stream& stream, const UnitSpec& spec, const SparseList& list);
/// count[f] = number of entries of field f; `add` adds it.
void count_list(const Stream& stream, const UnitSpec& spec, const SparseList& list, bool add,
                int64_t* count);

}  // namespace wisp
