// Going through a unit as its payloads do.
#pragma once

#include "compression/compressor.h"

namespace wisp {

/// Calls visit(field, slice, position) for each slice of each field, in order: the number of the
/// field, and the position in it of the slice's first element.
template <class Visit>
void each_slice(const UnitSpec& spec, const Visit& visit) {
  for (size_t f = 0; f < spec.fields.size(); ++f) {
    int64_t position = 0;
    for (const Slice& slice : spec.fields[f].slices) {
      visit(f, slice, position);
      position += slice.numel;
    }
  }
}

}  // namespace wisp
