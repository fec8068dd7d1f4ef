// Random rounding of a field's elements. Each worker has its own random numbers, so that errors
// cancel in the mean over workers. They depend on the field position, not on the cut. A value; any
// thread.
#pragma once

#include "compression/compressor.h"
#include "compression/quantize/group.h"
#include "core/random.h"

namespace wisp {

inline Dither dither_of(const StepInfo& info, const Field& field) {
  return {info.seed, static_cast<uint64_t>(info.step),
          field.key + static_cast<uint64_t>(info.rank) * 0x9e3779b97f4a7c15u};
}

/// Rounding of fixed-point numbers with 23 fraction bits. Rounds up with the probability of the
/// fraction, which is unbiased; or to the nearest.
struct Rounding {
  Dither dither;
  bool nearest = false;

  /// floor(fixed / 2^23 + u) for |fixed| <= 127 · 2^23, where `random` gives the uniform u in [0,
  /// 1). An integer stays the same.
  WISP_HD static int32_t round(int32_t fixed, uint32_t random) {
    return (fixed + static_cast<int32_t>(random >> 9)) >> 23;
  }

  /// visit(j, random) for each 0 <= j < size <= 64, in any order, in lane j % kLanes. `position` is
  /// the field position of j = 0.
  template <class Team, class Visit>
  WISP_HD void each(const Team& team, int64_t position, int64_t size, const Visit& visit) const {
    constexpr int64_t kShare = group::kLanes;
    static_assert(kShare == 16, "of what Dither::shared_bits shares");
    if (nearest) {
      group::each(team, size, [&](int64_t j) { visit(j, uint32_t{1} << 31); });
    } else if (size == group::kSize && position % group::kSize == 0) {
      // The usual case: no word is drawn twice.
      team.lanes([&](int64_t j) {
        const uint32_t word = dither.bits(position + j);
        visit(j, word);
        visit(j + kShare, Dither::turned(word, 1));
        visit(j + 2 * kShare, Dither::turned(word, 2));
        visit(j + 3 * kShare, Dither::turned(word, 3));
      });
    } else {
      group::each(team, size, [&](int64_t j) { visit(j, dither.shared_bits(position + j)); });
    }
  }
};

}  // namespace wisp
