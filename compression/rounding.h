// Random rounding of a field's elements: numbers of their own for each worker, so that the errors
// of a mean over workers cancel, and for each position in the field, however it is cut.
#pragma once

#include "compression/compressor.h"
#include "compression/group.h"
#include "core/random.h"

namespace wisp {

inline Dither dither_of(const StepInfo& info, const Field& field) {
  return {info.seed, static_cast<uint64_t>(info.step),
          field.key + static_cast<uint64_t>(info.rank) * 0x9e3779b97f4a7c15u};
}

/// Rounding of fixed-point numbers, 2^23 to a whole one: up with the probability of the fraction,
/// so that the mean is right; or to the nearest.
struct Rounding {
  Dither dither;
  bool nearest = false;

  /// Each fixed[j] of a group, at `position` + j of the field, becomes floor(fixed[j] / 2^23 + a
  /// uniform number of [0, 1)). For |fixed| <= 127 · 2^23; a whole number stays what it is.
  WISP_HD void operator()(int32_t* fixed, int64_t position) const {
    constexpr int64_t kHalf = group::kSize / 2;
    static_assert(kHalf == 32, "of what Dither::shared_bits shares");
    if (nearest) {
      for (int64_t j = 0; j < group::kSize; ++j) fixed[j] = (fixed[j] + (1 << 22)) >> 23;
    } else if (position % group::kSize == 0) {  // the usual case, without a word drawn twice
      for (int64_t j = 0; j < kHalf; ++j) {
        const uint32_t word = dither.bits(position + j);
        fixed[j] = up(fixed[j], word);
        fixed[j + kHalf] = up(fixed[j + kHalf], Dither::halves_swapped(word));
      }
    } else {
      for (int64_t j = 0; j < group::kSize; ++j)
        fixed[j] = up(fixed[j], dither.shared_bits(position + j));
    }
  }

 private:
  WISP_HD static int32_t up(int32_t fixed, uint32_t random) {
    return (fixed + static_cast<int32_t>(random >> 9)) >> 23;
  }
};

}  // namespace wisp
