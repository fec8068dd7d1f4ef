// Tables of a unit's fields and slices in device memory. Kernels use them to find the arena element
// at a field position.
#pragma once

#include "compression/compressor.h"
#include "compression/cursor.h"
#include "core/loops/device_table.h"

namespace wisp {

/// The tables as part of a scratch layout (cursor.h).
struct UnitRows {
  struct OfField {
    int64_t numel;
    int64_t slice, slices;  // index of its first slice in `slice`, number of its slices
  };
  struct OfSlice {
    int64_t position;  // field position of its first element
    int64_t shift;     // arena index - field position
  };

  OfField* field;
  OfSlice* slice;

  UnitRows(Cursor& cursor, const UnitSpec& spec);
  /// Writes the rows. The caller may put more rows behind them into the returned table.
  TableWriter table(const Stream& stream, const UnitSpec& spec) const;
  void write(const Stream& stream, const UnitSpec& spec) const { table(stream, spec).finish(); }

  /// Index of the slice that contains a field position.
  WISP_HD int64_t slice_of(const OfField& of, int64_t position) const {
    const OfSlice* first = slice + of.slice;
    return of.slice + row_of(position, of.slices, [=](int64_t s) { return first[s].position; });
  }
  /// End of the field positions in slice `s`, exclusive.
  WISP_HD int64_t end_of(const OfField& of, int64_t s) const {
    return s + 1 < of.slice + of.slices ? slice[s + 1].position : of.numel;
  }
};

}  // namespace wisp
