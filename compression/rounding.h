// Random rounding of a field's elements: numbers of their own for each worker, so that the errors
// of a mean over workers cancel, and for each position in the field, however it is cut.
#pragma once

#include "compression/compressor.h"
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

  /// floor(fixed / 2^23 + a uniform number of [0, 1)). For |fixed| <= 127 · 2^23; a whole number
  /// stays what it is.
  WISP_HD int32_t operator()(int32_t fixed, int64_t position) const {
    const uint32_t random = nearest ? 1u << 22 : dither.bits(position) >> 9;
    return (fixed + static_cast<int32_t>(random)) >> 23;
  }
};

}  // namespace wisp
