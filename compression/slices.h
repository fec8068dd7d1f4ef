// Iteration over the slices of fields and units, in the order of their payloads, and kernels that
// clear and copy. Pure; any thread.
#pragma once

#include <algorithm>

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

/// Visits the `length` field positions from `start` on, continuing at 0 after the last. Calls
/// visit(offset, at, numel) for each piece in slice order: the arena range [offset, offset + numel)
/// is the run's [at, at + numel). 0 <= start < field.numel, 0 <= length <= field.numel.
template <class Visit>
void each_piece(const Field& field, int64_t start, int64_t length, const Visit& visit) {
  each_slice(field, [&](const Slice& slice, int64_t begin) {
    const auto part = [&](int64_t from, int64_t to, int64_t run_start) {
      from = std::max(from, begin);
      to = std::min(to, begin + slice.numel);
      if (from < to) visit(slice.offset + from - begin, from - run_start, to - from);
    };
    part(start, start + length, start);
    part(0, start + length - field.numel, start - field.numel);
  });
}

/// The sum of of(field) over the fields of a unit.
template <class Of>
int64_t sum_of_fields(const UnitSpec& spec, const Of& of) {
  int64_t sum = 0;
  for (const Field& field : spec.fields) sum += of(field);
  return sum;
}

/// The sum of of(numel) over the slices of a unit.
template <class Of>
int64_t sum_of_slices(const UnitSpec& spec, const Of& of) {
  int64_t sum = 0;
  each_slice(spec, [&](size_t, const Slice& slice, int64_t) { sum += of(slice.numel); });
  return sum;
}

/// to[i] = 0.
template <class T>
struct ZeroAll {
  T* to;
  WISP_HD void operator()(int64_t i) const { to[i] = T{}; }
};

/// to[i] = from[i].
template <class T>
struct CopyAll {
  const T* from;
  T* to;
  WISP_HD void operator()(int64_t i) const { to[i] = from[i]; }
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
