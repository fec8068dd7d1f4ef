// Signs as a plane of bits: 1 for +, which zero counts as.
#pragma once

#include "compression/code.h"
#include "compression/planes.h"
#include "core/parallel.h"

namespace wisp {

/// Bytes of a plane for each slice of the unit.
inline int64_t signs_bytes(const UnitSpec& spec) {
  int64_t bytes = 0;
  for (const Field& field : spec.fields)
    for (const Slice& slice : field.slices) bytes += Plane<1>::bytes(slice.numel);
  return bytes;
}

/// Takes the slice's elements (a Source's take and sent; `sent` gets ± *scale, or nothing is said
/// without one) and writes their signs.
template <class Source>
struct WriteSigns {
  Source source;
  int64_t offset;
  const float* scale;  // or null
  Plane<1> plane;
  WISP_HD void operator()(int64_t group) const {
    const int64_t size = Plane<1>::size_of(group, plane.numel);
    const int64_t first = offset + group * Plane<1>::kGroup;
    uint8_t positive[Plane<1>::kGroup] = {};
    if (size == Plane<1>::kGroup) {
#pragma GCC ivdep
      for (int64_t j = 0; j < Plane<1>::kGroup; ++j) positive[j] = take(first + j);
    } else {
      for (int64_t j = 0; j < size; ++j) positive[j] = take(first + j);
    }
    plane.store(group, positive);
  }
  WISP_HD uint8_t take(int64_t i) const {
    const bool positive = source.take(i) >= 0.0f;
    if (scale) source.sent(i, positive ? *scale : -*scale);
    return positive;
  }
};

/// Writes the elements of a group, or adds to them: `high` where the bit is 1, else `low`.
WISP_HD inline void select_by_bits(const Plane<1>& plane, int64_t group, float low, float high,
                                   bool add, float* into) {
  const int64_t size = Plane<1>::size_of(group, plane.numel);
  float* out = into + group * Plane<1>::kGroup;
  if (size == Plane<1>::kGroup) {
    for (int half = 0; half < 2; ++half, out += 32) {
      const uint32_t word = plane.word(group, half);
      for (int j = 0; j < 32; ++j) out[j] = (add ? out[j] : 0.0f) + (word >> j & 1u ? high : low);
    }
  } else {
    uint8_t bit[Plane<1>::kGroup];
    plane.load(group, bit);
    for (int64_t j = 0; j < size; ++j) out[j] = (add ? out[j] : 0.0f) + (bit[j] ? high : low);
  }
}

/// into[i] = ± weight · *scale, or added to it.
struct ReadSigns {
  Plane<1> plane;
  const float* scale;
  float weight;
  bool add;
  float* into;
  WISP_HD void operator()(int64_t group) const {
    const float value = weight * *scale;
    select_by_bits(plane, group, -value, value, add, into);
  }
};

template <class Source>
void write_signs(const Stream& stream, const Source& source, const Slice& slice, const float* scale,
                 std::byte* bits) {
  parallel_for(stream, Plane<1>::groups(slice.numel),
               WriteSigns<Source>{source, slice.offset, scale, {bits, slice.numel}});
}

inline void read_signs(const Stream& stream, const std::byte* bits, const float* scale,
                       float weight, bool add, float* into, int64_t numel) {
  parallel_for(stream, Plane<1>::groups(numel),
               ReadSigns{{const_cast<std::byte*>(bits), numel}, scale, weight, add, into});
}

}  // namespace wisp
