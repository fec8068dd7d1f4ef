// exp, log, tanh and the logistic function for kernels. They have no calls and no branches, so
// loops vectorise, and every device computes the same bits. NaN gives NaN.
#pragma once

#include <cmath>

#include "core/tensor/dtype.h"

namespace wisp {
namespace elementary {

/// exp(x) = 2^power (1 + tail).
struct Exponential {
  uint32_t power;  // modulo 2^32
  float tail;
};

WISP_HD inline float power_of_two(uint32_t power) { return float_from_bits((power + 127u) << 23); }

/// For |x| < 2^15: x = power · ln 2 + r with |r| <= (ln 2) / 2. The polynomial has the least
/// relative error in exp(r), 3.1e-9. It was found by reweighted least squares; each coefficient was
/// rounded before the next ones were fitted.
WISP_HD inline Exponential reduced(float x) {
  const float kShift = 12582912.0f;  // 1.5 · 2^23: the last bits of a sum are the nearest integer
  const float shifted = x * 1.44269504f + kShift;
  const float power = shifted - kShift;
  // the first part of ln 2 has 10 bits, so its product is exact
  const float r = (x - power * 0.693359375f) + power * 2.1219444e-4f;
  const float p = 0.49999994f +
                  r * (0.16666521f + r * (4.1668266e-2f + r * (8.368684e-3f + r * 1.3820946e-3f)));
  return {float_bits(shifted) - float_bits(kShift), r + r * r * p};
}

}  // namespace elementary

/// exp(x) within 1 unit of the last place, for subnormal results too. Infinity above 88.73, 0 below
/// -103.98. The bounds in this file hold for every float: all were tried.
WISP_HD inline float exponential(float x) {
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const elementary::Exponential e = elementary::reduced(x);
  // 2^power may overflow where the result does not, so each half of the power is a factor
  const auto half = static_cast<uint32_t>(static_cast<int32_t>(e.power) >> 1);
  return (1.0f + e.tail) * elementary::power_of_two(half) *
         elementary::power_of_two(e.power - half);
}
WISP_HD inline double exponential(double x) { return ::exp(x); }

/// log(x) within 1 unit of the last place, for subnormal x too. -infinity at 0, NaN below. With x =
/// 2^power (1 + f), 1 + f in [sqrt(1/2), sqrt(2)), and s = f / (2 + f):
/// log(1 + f) = 2 s + s³ p(s²) = f - f²/2 + s (f²/2 + s² p(s²)).
/// p was fitted like the polynomial of reduced(), with relative error 8.1e-10.
WISP_HD inline float logarithm(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const uint32_t bits = float_bits(subnormal ? x * 8388608.0f : x) - 0x3f3504f3u;  // - sqrt(1/2)
  const auto power = static_cast<float>((static_cast<int32_t>(bits) >> 23) - (subnormal ? 23 : 0));
  const float f = float_from_bits((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  const float p = 0.66666776f + z * (0.3997759f + z * 0.29870573f);
  const float half = 0.5f * f * f;
  const float log =
      power * 0.693359375f + (f - (half - (s * (half + z * p) - power * 2.1219444e-4f)));
  const float end = x == 0.0f ? -HUGE_VALF : x > 0.0f ? x : HUGE_VALF - HUGE_VALF;
  return x > 0.0f && x < HUGE_VALF ? log : end;
}
WISP_HD inline double logarithm(double x) { return ::log(x); }

/// tanh(x) = (exp(2 |x|) - 1) / (exp(2 |x|) + 1) with the sign of x, within 2.7 units of the last
/// place, also near 0.
WISP_HD inline float tangent(float x) {
  float twice = 2.0f * fabsf(x);
  twice = twice > 20.0f ? 20.0f : twice;  // tanh(10) rounds to 1
  const elementary::Exponential e = elementary::reduced(twice);
  const float scale = elementary::power_of_two(e.power);
  const float less_one = scale * e.tail + (scale - 1.0f);
  return copysignf(less_one / (less_one + 2.0f), x);
}
WISP_HD inline double tangent(double x) { return ::tanh(x); }

/// 1 / (1 + exp(-x)) within 2.5 units of the last place.
WISP_HD inline float sigmoid(float x) {
  const float e = exponential(-fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
WISP_HD inline double sigmoid(double x) {
  const double e = ::exp(-fabs(x));
  return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

}  // namespace wisp
