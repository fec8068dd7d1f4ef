// A unit's fields and slices as kernels see them: rows in device memory, for kernels that find the
// arena's element of a field's position.
#pragma once

#include "compression/compressor.h"
#include "compression/cursor.h"
#include "core/loops/device_table.h"

namespace wisp {

/// Part of a layout.
struct UnitRows {
  struct OfField {
    int64_t numel;
    int64_t slice, slices;  // its first, of those of all fields, and how many
  };
  struct OfSlice {
    int64_t position;  // of its first element in the field
    int64_t shift;     // arena index - field position
  };

  OfField* field;
  OfSlice* slice;

  UnitRows(Cursor& cursor, const UnitSpec& spec);
  /// Writes the rows, and with them what is put into the table behind them.
  TableWriter table(const Stream& stream, const UnitSpec& spec) const;
  void write(const Stream& stream, const UnitSpec& spec) const { table(stream, spec).finish(); }

  /// The slice of a field's position.
  WISP_HD int64_t slice_of(const OfField& of, int64_t position) const {
    const OfSlice* first = slice + of.slice;
    return of.slice + row_of(position, of.slices, [=](int64_t s) { return first[s].position; });
  }
  /// Behind the last position of a slice of the field.
  WISP_HD int64_t end_of(const OfField& of, int64_t s) const {
    return s + 1 < of.slice + of.slices ? slice[s + 1].position : of.numel;
  }
};

}  // namespace wisp
