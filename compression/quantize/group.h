// Groups of 64 elements, the units in which kernels pack codes into planes. A small team works on a
// group, with four elements in each lane and codes of fixed size. Any thread of a kernel.
#pragma once

#include "compression/code.h"
#include "compression/quantize/planes.h"
#include "core/prefetch.h"

namespace wisp::group {

constexpr int64_t kSize = Plane<8>::kGroup;
constexpr int64_t kLine = 16;  // floats in 64 bytes

/// Number of elements of the group that begins at `begin`, in an array of `numel`.
WISP_HD inline int64_t size_at(int64_t begin, int64_t numel) {
  return numel - begin < kSize ? numel - begin : kSize;
}

/// The codes of a group, shared by its team.
struct Codes {
  alignas(8) uint8_t code[kSize];
};

/// body(j) for each j in [0, size). A whole group runs in a loop of constant length.
template <class Team, class Body>
WISP_HD inline void each(const Team& team, int64_t size, const Body& body) {
  if (size == kSize) {
    team.each(kSize, body);
  } else {
    team.each(size, body);
  }
}

/// code[j] = of(j) for each j in [0, size), calling of(j) once; 0 behind.
template <class Team, class Of>
WISP_HD inline void fill(const Team& team, int64_t size, uint8_t* code, const Of& of) {
  if (size == kSize) {
    team.each(kSize, [&](int64_t j) { code[j] = of(j); });
  } else {
    team.each(size, [&](int64_t j) { code[j] = of(j); });
    team.each(kSize - size, [&](int64_t j) { code[size + j] = 0; });
  }
}

/// The result of visit(source), which is compiled once for each kind of source, so that loops do
/// not branch on the source's pointers.
template <class Visit>
WISP_HD inline auto by_kind(const Source& source, const Visit& visit) {
  if (!source.gradient || source.masked) return visit(source);
  Source kind = source;
  kind.masked = nullptr;
  if (!source.kept) {
    kind.kept = nullptr;
    return visit(kind);
  }
  if (source.tracks) {
    kind.tracks = true;
    return visit(kind);
  }
  kind.tracks = false;
  return visit(kind);
}

/// Prefetches the group at `at`, in the arena or a plain array.
WISP_HD inline void prefetch(const Source& source, int64_t at) {
  for (int64_t j = 0; j < kSize; j += kLine) source.prefetch(at + j);
}
WISP_HD inline void prefetch(const float* at) {
  for (int64_t j = 0; j < kSize; j += kLine) prefetch_ahead(at + j);
}

/// into[j] = weight * value(j) for each j in [0, size); `add` adds instead.
template <class Team, class Value>
WISP_HD inline void give(const Team& team, int64_t size, const Value& value, float weight, bool add,
                         float* into) {
  if (size < kSize) {
    team.each(size, [&](int64_t j) { into[j] = (add ? into[j] : 0.0f) + weight * value(j); });
  } else if (add) {
    team.each(kSize, [&](int64_t j) { into[j] += weight * value(j); });
  } else {
    team.each(kSize, [&](int64_t j) { into[j] = weight * value(j); });
  }
}

/// visit(x) for each group of the arena range [at, at + size). x(j) is the group's j-th number,
/// zero behind the range.
template <class Visit>
WISP_HD inline void each_group(const Source& source, int64_t at, int64_t size, const Visit& visit) {
  const int64_t end = at + size;
  for (; at + kSize <= end; at += kSize) {
    prefetch(source, at);
    visit([&](int64_t j) { return source.peek(at + j); });
  }
  if (at < end) visit([&](int64_t j) { return at + j < end ? source.peek(at + j) : 0.0f; });
}

/// Combines the four numbers of lane j in a group, x(j), x(j + kLanes) …, and then combines them
/// with lane[j].
constexpr int64_t kLanes = kSize / 4;
static_assert(kLanes == parallel::kLanes);
template <class Op, class Lanes, class Numbers, class Map>
WISP_HD inline void gather(Lanes& lane, int64_t j, const Numbers& x, const Map& map) {
  const auto low = Op::combine(map(x(j)), map(x(j + kLanes)));
  const auto high = Op::combine(map(x(j + 2 * kLanes)), map(x(j + 3 * kLanes)));
  lane[j] = Op::combine(lane[j], Op::combine(low, high));
}

struct Add {
  WISP_HD static double combine(double a, double b) { return a + b; }
};
struct Max {
  WISP_HD static int32_t combine(int32_t a, int32_t b) { return a < b ? b : a; }
};

/// The bits of |x|, which order like |x| and are faster to compare.
struct MagnitudeBits {
  WISP_HD int32_t operator()(float x) const {
    return static_cast<int32_t>(float_bits(x) & 0x7fffffffu);
  }
};
struct AsDouble {
  WISP_HD double operator()(float x) const { return x; }
};
struct Square {
  WISP_HD double operator()(float x) const {
    return static_cast<double>(x) * static_cast<double>(x);
  }
};

}  // namespace wisp::group
