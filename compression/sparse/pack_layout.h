// The layout of a packed unit (pack.h), and the scratch with which it is packed and read. Only
// pack.cpp and unpack.cpp include this file.
#pragma once

#include "compression/sparse/pack.h"
#include "compression/unit_rows.h"

namespace wisp::packed {

/// Layout of the part that holds values.
struct ValueLayout {
  int64_t header, each, alignment;  // each: bytes of a value; 0: natural
  WISP_HD int64_t size(int64_t entries) const {
    return each > 0 ? each * entries : entries + (entries + 7) / 8;
  }
  /// Begin of the indices.
  WISP_HD int64_t end(int64_t entries) const {
    return (header + size(entries) + alignment - 1) / alignment * alignment;
  }
};

inline int64_t value_bits(WireFormat format) {
  if (format == WireFormat::natural) return 9;
  return format == WireFormat::f32 ? 32 : 16;
}

inline int64_t stated_counts(const IndexFormat& format, const UnitSpec& spec) {
  return static_cast<int64_t>(spec.fields.size()) - (format.counts_all() ? 0 : 1);
}

inline ValueLayout layout_of(WireFormat values, const IndexFormat& format, const UnitSpec& spec) {
  const int64_t each = values == WireFormat::natural ? 0 : value_bits(values) / 8;
  return {4 * stated_counts(format, spec), each, format.alignment()};
}

/// The most entries of a field.
inline int64_t most_entries(const UnitSpec& spec, const Room& room) {
  int64_t most = 0;
  for (const Field& field : spec.fields) most = std::max(most, room.of(field));
  return most;
}

/// Scratch of a unit while it is packed or read. The list includes escapes, and its fields follow
/// each other without gaps.
struct Scratch {
  int64_t* entries;
  int64_t* offset;   // offset of the indices
  int64_t* of_part;  // of each part of each field: entries with escapes, or positions of its runs
  int64_t* bad;      // of each field; not 0: its positions are malformed
  SparseList list;
  UnitRows rows;
  int64_t* most;  // capacity of each field; behind the rows, in their table
  std::byte* format;

  Scratch(Cursor& cursor, const IndexFormat& index, const UnitSpec& spec, const Room& room)
      : entries(cursor.take<int64_t>(1)),
        offset(cursor.take<int64_t>(1)),
        of_part(cursor.take<int64_t>(std::ssize(spec.fields) *
                                     select::most_parts(most_entries(spec, room)))),
        bad(cursor.take<int64_t>(std::ssize(spec.fields))),
        list(cursor, std::ssize(spec.fields), room.of(spec)),
        rows(cursor, spec),
        most(cursor.take<int64_t>(std::ssize(spec.fields))),
        format(cursor.take<std::byte>(index.scratch_bytes(spec, room))) {}
};

/// The sum of count_of(f) over [from, to).
template <class CountOf>
WISP_HD int64_t sum_of(const Team& team, int64_t from, int64_t to, const CountOf& count_of) {
  return team.scan(
      to - from, [&](int64_t i) { return count_of(from + i); }, [](int64_t, int64_t) {});
}

}  // namespace wisp::packed
