// Signs as a plane of bits: 1 for +, which zero counts as.
#pragma once

#include "compression/quantize/group.h"
#include "core/loops/parallel.h"

namespace wisp {

using ReadPlane = Plane<1, const std::byte>;

/// Bytes of a plane for each slice of the unit.
inline int64_t signs_bytes(const UnitSpec& spec) {
  int64_t bytes = 0;
  for (const Field& field : spec.fields)
    for (const Slice& slice : field.slices) bytes += Plane<1>::bytes(slice.numel);
  return bytes;
}

struct ClearBytes {
  std::byte* bytes;
  WISP_HD void operator()(int64_t i) const { bytes[i] = std::byte{0}; }
};

/// Zeros behind planes that do not fill what travels.
inline void clear_bytes(const Stream& stream, std::byte* begin, const std::byte* end) {
  parallel_for(stream, end - begin, ClearBytes{begin});
}

/// Writes the signs of a group's numbers, x[0 … size).
WISP_HD inline void store_signs(const Plane<1>& plane, int64_t group, int64_t size,
                                const float* x) {
  uint8_t positive[group::kSize];
  for (int64_t j = 0; j < group::kSize; ++j) positive[j] = x[j] >= 0.0f;
  for (int64_t j = size; j < group::kSize; ++j) positive[j] = 0;
  plane.store(group, positive);
}

/// Writes the signs of a group of the source's numbers, and settles that `high` travels of those
/// that are +, `low` of the others.
WISP_HD inline void send_signs(const Source& source, int64_t offset, const Plane<1>& plane,
                               int64_t group, float low, float high) {
  const int64_t size = Plane<1>::size_of(group, plane.numel);
  const int64_t at = offset + group * group::kSize;
  group::prefetch(source, at);
  uint8_t positive[group::kSize] = {};
  const auto send = [&](int64_t j) {
    const float value = source.peek(at + j);
    positive[j] = value >= 0.0f;
    source.settle(at + j, value, value >= 0.0f ? high : low);
  };
  if (size == group::kSize) {
#pragma GCC ivdep
    for (int64_t j = 0; j < group::kSize; ++j) send(j);
  } else {
#pragma GCC ivdep
    for (int64_t j = 0; j < size; ++j) send(j);
  }
  plane.store(group, positive);
}

/// Writes the elements of a group, or adds to them: `high` where the bit is 1, else `low`.
WISP_HD inline void select_by_bits(const ReadPlane& plane, int64_t group, float low, float high,
                                   bool add, float* into) {
  const int64_t at = group * group::kSize;
  uint8_t bit[group::kSize];
  plane.load(group, bit);
  float value[group::kSize];
  for (int64_t j = 0; j < group::kSize; ++j) value[j] = bit[j] ? high : low;
  group::give(value, group::size_at(at, plane.numel), 1.0f, add, into + at);
}

/// into[i] = ± weight · *scale, or added to it.
struct ReadSigns {
  ReadPlane plane;
  const float* scale;
  float weight;
  bool add;
  float* into;
  WISP_HD void operator()(int64_t group) const {
    const float value = weight * *scale;
    select_by_bits(plane, group, -value, value, add, into);
  }
};

inline void read_signs(const Stream& stream, const std::byte* bits, const float* scale,
                       float weight, bool add, float* into, int64_t numel) {
  parallel_for(stream, ReadPlane::groups(numel), ReadSigns{{bits, numel}, scale, weight, add, into},
               group::kSize);
}

}  // namespace wisp
