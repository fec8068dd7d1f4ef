// The layout of a packed unit (pack.h), and the scratch with which it is packed and read. Only
// pack.cpp and unpack.cpp include this file.
#pragma once

#include "compression/sparse/pack.h"
#include "compression/unit_rows.h"

namespace wisp::packed {

/// The places of values and indices in a payload.
struct WireLayout {
  int64_t stated;     // fields whose entries the payload states
  int64_t value;      // bytes of a value; 0: natural
  int64_t number;     // bytes of an index; 0: indices are not one number per entry
  int64_t alignment;  // of the indices

  /// Begin of the values.
  WISP_HD int64_t header() const { return 4 * stated; }
  /// End of the values.
  WISP_HD int64_t values_end(int64_t entries) const {
    return header() + (value > 0 ? value * entries : entries + (entries + 7) / 8);
  }
  /// Begin of the indices.
  WISP_HD int64_t indices(int64_t entries) const {
    return (values_end(entries) + alignment - 1) / alignment * alignment;
  }
};

inline int64_t value_bits(WireFormat format) {
  if (format == WireFormat::natural) return 9;
  return format == WireFormat::f32 ? 32 : 16;
}

inline WireLayout layout_of(WireFormat values, const IndexFormat& format, const UnitSpec& spec) {
  const int64_t value = values == WireFormat::natural ? 0 : value_bits(values) / 8;
  const int64_t stated = std::ssize(spec.fields) - (format.counts_all ? 0 : 1);
  return {stated, value, format.number, format.alignment};
}

/// Words about a payload's entries, for the kernels that follow.
struct Totals {
  int64_t* entries;
  int64_t* offset;  // begin of the indices
};

/// The most entries of a field.
inline int64_t most_entries(const UnitSpec& spec, const Room& room) {
  int64_t most = 0;
  for (const Field& field : spec.fields) most = std::max(most, room.of(field));
  return most;
}

/// Scratch of a unit while it is packed or read. The list includes escapes, and its fields follow
/// each other without gaps.
struct Scratch {
  Totals totals;
  int64_t* of_part;  // of each part of each field: entries with escapes, or positions of its runs
  int64_t* bad;      // of each field; not 0: its positions are malformed
  SparseList list;
  UnitRows rows;
  int64_t* most;  // capacity of each field; behind the rows, in their table
  std::byte* format;

  Scratch(Cursor& cursor, const IndexFormat& index, const UnitSpec& spec, const Room& room)
      : totals{cursor.take<int64_t>(1), cursor.take<int64_t>(1)},
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
