// Planes of signs: bit 1 for +, and for zero. For kernels on any device.
#pragma once

#include "compression/quantize/group.h"
#include "compression/slices.h"
#include "core/loops/parallel.h"

namespace wisp {

using ReadPlane = Plane<1, const std::byte>;

/// Bytes of the planes of all slices of the unit.
inline int64_t signs_bytes(const UnitSpec& spec) { return sum_of_slices(spec, Plane<1>::bytes); }

/// Clears the bytes between the planes and the end of a payload.
inline void clear_bytes(const Stream& stream, std::byte* begin, const std::byte* end) {
  if (begin < end) parallel_for(stream, end - begin, ZeroAll<std::byte>{begin});
}

/// Writes the signs of a group of the source's numbers. Settles that `high` is sent for each +, and
/// `low` for each -.
template <class Team>
WISP_HD inline void send_signs(const Team& team, const Source& source, int64_t offset,
                               const Plane<1>& plane, int64_t group, float low, float high,
                               group::Codes& positive) {
  const int64_t size = Plane<1>::size_of(group, plane.numel);
  const int64_t at = offset + group * group::kSize;
  const auto read = [&](int64_t j) { return source.peek(at + j); };
  const auto bit = [](int64_t, float value) { return value >= 0.0f; };
  const auto settle = [&](int64_t j, float value) {
    source.settle(at + j, value, value >= 0.0f ? high : low);
  };
  group::prefetch(source, at);
  if (size == group::kSize) return plane.store_bits(team, group, read, bit, settle);
  group::fill(team, size, positive.code, [&](int64_t j) {
    const float value = read(j);
    settle(j, value);
    return static_cast<uint8_t>(bit(j, value));
  });
  plane.store(team, group, positive.code);
}

/// Writes or adds the elements of a group: `high` where the bit is 1, else `low`.
template <class Team>
WISP_HD inline void select_by_bits(const Team& team, const ReadPlane& plane, int64_t group,
                                   float low, float high, bool add, float* into,
                                   group::Codes& bits) {
  const int64_t at = group * group::kSize;
  plane.load(team, group, bits.code);
  group::give(
      team, group::size_at(at, plane.numel), [&](int64_t j) { return bits.code[j] ? high : low; },
      1.0f, add, into + at);
}

/// into[i] = ± weight · *scale; `add` adds it.
struct ReadSigns {
  using Shared = group::Codes;
  ReadPlane plane;
  const float* scale;
  float weight;
  bool add;
  float* into;
  template <class Team>
  WISP_HD void operator()(const Team& team, int64_t group, Shared& bits) const {
    const float value = weight * *scale;
    select_by_bits(team, plane, group, -value, value, add, into, bits);
  }
};

}  // namespace wisp
