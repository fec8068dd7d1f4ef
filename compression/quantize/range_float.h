// The range-based float: N bits whose codes all lie in a given range. A number is a sign and a code
// of N - 1 bits. Code 0 is 0. Codes 1 to P = 2^(N-1) - 1 are the P largest numbers of m mantissa
// bits up to the end of the range; the least of them is eps. Numbers of m mantissa bits are f32 bit
// patterns cut to their upper bits, so they are consecutive integers, and
//   code(x) = pattern(x) - pattern(eps) + 1,    pattern(eps) = pattern(max) - P + 1
// Source: Wang et al. 2020 (FFT-based gradient sparsification). Only its abstract was found: eps
// and the use of all codes are theirs, the arithmetic is a reconstruction. Ours: eps by subtraction
// instead of a search; rounding to nearest; a symmetric range. A value; any thread.
#pragma once

#include "core/tensor/dtype.h"

namespace wisp {

class RangeFloat {
 public:
  /// `bits` in [2, 32]; `mantissa` in [0, 23]; `max`, the largest magnitude to encode, is finite
  /// and not negative. If the range would reach below f32's least number of m mantissa bits, eps is
  /// that number, and the largest codes are unused.
  WISP_HD RangeFloat(int bits, int mantissa, float max)
      : shift_(23 - mantissa), sign_(uint32_t{1} << (bits - 1)) {
    const uint32_t codes = sign_ - 1;  // P
    const uint32_t finite = 0x7f7fffffu >> shift_;
    const uint32_t nearest = pattern(float_bits(max));
    high_ = nearest < 1 ? 1 : nearest < finite ? nearest : finite;
    low_ = high_ > codes ? high_ - codes + 1 : 1;
  }

  /// The least positive number.
  WISP_HD float eps() const { return float_from_bits(low_ << shift_); }
  /// The largest number: `max` rounded to m mantissa bits, at least eps.
  WISP_HD float largest() const { return float_from_bits(high_ << shift_); }
  /// Number of codes for positive numbers: P, or fewer if the range ends first.
  WISP_HD uint32_t codes() const { return high_ - low_ + 1; }

  /// The nearest number, halves away from 0, clamped to the largest. In [eps, largest] the relative
  /// error is at most 2^-(m+1); below eps the error is at most eps / 2.
  WISP_HD uint32_t encode(float x) const {
    const uint32_t magnitude = float_bits(x) & 0x7fffffffu;
    const uint32_t rounded = pattern(magnitude);
    const uint32_t inside = rounded < high_ ? rounded : high_;
    const float value = float_from_bits(magnitude);
    const bool nothing = inside < low_ && value + value < eps();
    const uint32_t code = nothing ? 0 : inside < low_ ? 1 : inside - low_ + 1;
    return (float_bits(x) & 0x80000000u) && code > 0 ? sign_ | code : code;
  }

  /// Any N bits decode to a number in [-largest, largest]: unused codes are the largest number, and
  /// a sign alone is 0.
  WISP_HD float decode(uint32_t code) const {
    const uint32_t magnitude = code & (sign_ - 1);
    if (magnitude == 0) return 0.0f;
    const uint32_t inside = magnitude < codes() ? magnitude : codes();
    const uint32_t minus = code & sign_ ? 0x80000000u : 0u;
    return float_from_bits(minus | ((inside + low_ - 1) << shift_));
  }

 private:
  /// Pattern of the nearest number of m mantissa bits, halves up.
  WISP_HD uint32_t pattern(uint32_t magnitude) const {
    const uint32_t half = shift_ > 0 ? uint32_t{1} << (shift_ - 1) : 0;
    return (magnitude + half) >> shift_;
  }

  int shift_;
  uint32_t sign_;        // sign bit of the code
  uint32_t low_, high_;  // patterns of eps and of the largest number
};

}  // namespace wisp
