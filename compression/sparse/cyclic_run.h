// A cyclic run of field positions as pieces of the arenas. Host arithmetic; any thread.
#pragma once

#include <algorithm>

#include "compression/compressor.h"

namespace wisp {

/// Visits the `length` field positions from `start` on, continuing at 0 after the last. Calls
/// visit(offset, at, numel) for each piece in slice order: the arena range [offset, offset + numel)
/// is the run's [at, at + numel). 0 <= start < field.numel, 0 <= length <= field.numel.
template <class Visit>
void each_piece(const Field& field, int64_t start, int64_t length, const Visit& visit) {
  int64_t begin = 0;  // field position of the slice
  for (const Slice& slice : field.slices) {
    const int64_t end = begin + slice.numel;
    const auto part = [&](int64_t from, int64_t to, int64_t run_start) {
      from = std::max(from, begin);
      to = std::min(to, end);
      if (from < to) visit(slice.offset + from - begin, from - run_start, to - from);
    };
    part(start, start + length, start);
    part(0, start + length - field.numel, start - field.numel);
    begin = end;
  }
}

}  // namespace wisp
