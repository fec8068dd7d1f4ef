// Iteration over the slices of fields and units, in the order of their payloads. Pure; any thread.
#pragma once

#include "compression/compressor.h"

namespace wisp {

/// Calls visit(slice, position) for each slice of the field, in order. `position` is the field
/// position of the slice's first element.
template <class Visit>
void each_slice(const Field& field, const Visit& visit) {
  int64_t position = 0;
  for (const Slice& slice : field.slices) {
    visit(slice, position);
    position += slice.numel;
  }
}

/// Calls visit(f, slice, position) for each slice of each field, in order. `f` is the index of the
/// field.
template <class Visit>
void each_slice(const UnitSpec& spec, const Visit& visit) {
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    each_slice(spec.fields[f],
               [&](const Slice& slice, int64_t position) { visit(f, slice, position); });
  }
}

/// Kernel that clears an arena.
struct ZeroAll {
  float* arena;
  WISP_HD void operator()(int64_t i) const { arena[i] = 0.0f; }
};

/// The arena ranges of a unit, for parallel_for_ranges.
inline auto ranges_of(const UnitSpec& spec) {
  return [&spec](const auto& put) {
    each_slice(spec, [&](size_t, const Slice& slice, int64_t) {
      put(slice.offset, slice.offset + slice.numel);
    });
  };
}

}  // namespace wisp
