// Kernels that pack codes into planes work on groups of 64 elements: arrays of fixed size between
// the arena and the codes, so that every loop over a group is vectorised.
#pragma once

#include "compression/code.h"
#include "compression/quantize/planes.h"
#include "core/prefetch.h"

namespace wisp::group {

constexpr int64_t kSize = Plane<8>::kGroup;
constexpr int64_t kLine = 16;  // floats in 64 bytes

/// The elements of a group that begins at `begin`, of `numel`.
WISP_HD inline int64_t size_at(int64_t begin, int64_t numel) {
  return numel - begin < kSize ? numel - begin : kSize;
}

/// visit(source), compiled once for each kind of source: what it asks of the source's pointers is
/// no branch in its loops.
template <class Visit>
WISP_HD inline void by_kind(const Source& source, const Visit& visit) {
  if (!source.gradient || source.masked) return visit(source);
  Source kind = source;
  kind.masked = nullptr;
  if (!source.kept) {
    kind.kept = nullptr;
    visit(kind);
  } else if (source.tracks) {
    kind.tracks = true;
    visit(kind);
  } else {
    kind.tracks = false;
    visit(kind);
  }
}

/// For a loop that reads the group at `at`, an element of the arena or of a plain array.
WISP_HD inline void prefetch(const Source& source, int64_t at) {
  for (int64_t j = 0; j < kSize; j += kLine) source.prefetch(at + j);
}
WISP_HD inline void prefetch(const float* at) {
  for (int64_t j = 0; j < kSize; j += kLine) prefetch_ahead(at + j);
}

/// The numbers at [at, at + size) of the arena, then zeros.
WISP_HD inline void peek(const Source& source, int64_t at, int64_t size, float* x) {
  if (size == kSize) {
    for (int64_t j = 0; j < kSize; ++j) x[j] = source.peek(at + j);
  } else {
    for (int64_t j = 0; j < kSize; ++j) x[j] = j < size ? source.peek(at + j) : 0.0f;
  }
}
WISP_HD inline void take(const Source& source, int64_t at, int64_t size, float* x) {
  prefetch(source, at);
  if (size == kSize) {
    for (int64_t j = 0; j < kSize; ++j) x[j] = source.take(at + j);
  } else {
    for (int64_t j = 0; j < kSize; ++j) x[j] = j < size ? source.take(at + j) : 0.0f;
  }
}

/// into[0 … size) = weight * value, or is added to.
WISP_HD inline void give(const float* value, int64_t size, float weight, bool add, float* into) {
  if (size < kSize) {
    for (int64_t j = 0; j < size; ++j) into[j] = (add ? into[j] : 0.0f) + weight * value[j];
  } else if (add) {
    for (int64_t j = 0; j < kSize; ++j) into[j] += weight * value[j];
  } else {
    for (int64_t j = 0; j < kSize; ++j) into[j] = weight * value[j];
  }
}

/// visit(x) for each group of the numbers at [at, at + size) of the arena: x(j) is one of 64, zero
/// behind the last.
template <class Visit>
WISP_HD inline void each(const Source& source, int64_t at, int64_t size, const Visit& visit) {
  const int64_t end = at + size;
  for (; at + kSize <= end; at += kSize) {
    prefetch(source, at);
    visit([&](int64_t j) { return source.peek(at + j); });
  }
  if (at == end) return;
  float x[kSize];
  peek(source, at, end - at, x);
  visit([&](int64_t j) { return x[j]; });
}

// Reductions over groups: four elements are combined before they join one of kLanes lanes, which
// stay in registers. The pragmas, as g++ would unroll loops of 16 instead of vectorising them.
constexpr int64_t kLanes = kSize / 4;

/// lane[j] = its combination with those of a group's map(x(j)), map(x(j + kLanes)) …
template <class Op, class T, class Numbers, class Map>
WISP_HD inline void gather(T* lane, const Numbers& x, const Map& map) {
#pragma omp simd
  for (int64_t j = 0; j < kLanes; ++j) {
    const T low = Op::combine(map(x(j)), map(x(j + kLanes)));
    const T high = Op::combine(map(x(j + 2 * kLanes)), map(x(j + 3 * kLanes)));
    lane[j] = Op::combine(lane[j], Op::combine(low, high));
  }
}
/// All lanes, as a tree; overwrites them.
template <class Op, int64_t kWidth = kLanes, class T>
WISP_HD inline T fold(T* lane) {
#pragma omp simd
  for (int64_t j = 0; j < kWidth / 2; ++j) lane[j] = Op::combine(lane[j], lane[j + kWidth / 2]);
  if constexpr (kWidth > 2) return fold<Op, kWidth / 2>(lane);
  return lane[0];
}

struct Add {
  WISP_HD static double combine(double a, double b) { return a + b; }
};
struct Max {
  WISP_HD static int32_t combine(int32_t a, int32_t b) { return a < b ? b : a; }
};

/// The bits of |x|, which are in its order, and faster to compare.
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
