// Values as they travel, gathered or summed: f32, f16 or bf16.
#pragma once

#include "core/dtype.h"

namespace wisp {

/// visit(T()) with the T of f32, f16 or bf16.
template <class Visit>
void with_wire_type(DType dtype, const Visit& visit) {
  if (dtype == DType::f16) {
    visit(Half());
  } else if (dtype == DType::bf16) {
    visit(BFloat16());
  } else {
    visit(0.0f);
  }
}

template <class T>
constexpr float kLargest = 3.4028235e38f;
template <>
constexpr float kLargest<BFloat16> = 3.3895314e38f;
template <>
constexpr float kLargest<Half> = 65504.0f;

/// The largest T of which `count` can be added up without overflow. A sum of floats may overflow,
/// as that of the gradients themselves.
template <class T>
float largest_summand(int count) {
  T most(kLargest<T> / static_cast<float>(count));
  if (static_cast<float>(most) * static_cast<float>(count) > kLargest<T>) --most.bits;
  return static_cast<float>(most);
}
template <>
inline float largest_summand<float>(int) {
  return kLargest<float>;
}

/// `value`, or the bound that it passes.
WISP_HD inline float within(float most, float value) {
  return value < -most ? -most : value > most ? most : value;
}

/// The T nearest to `value`; beyond Half's range, its largest: what is cut off stays in a residual,
/// and no infinity travels.
template <class T>
WISP_HD inline T to_wire(float value) {
  return T(value);
}

/// Half's constructor has branches, which keep a loop from being vectorised (20 times slower); this
/// has none.
template <>
WISP_HD inline Half to_wire<Half>(float value) {
  constexpr uint32_t kLargest = 0x477fe000u;  // 65504
  const uint32_t bits = float_bits(value);
  const uint32_t whole = bits & 0x7fffffffu;
  const uint32_t magnitude = whole < kLargest ? whole : kLargest;
  // below 2^-14: the float adder rounds
  const uint32_t subnormal = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const uint32_t small = 0u - static_cast<uint32_t>(magnitude < 0x38800000u);  // as masks
  const uint32_t nan = 0u - static_cast<uint32_t>(whole > 0x7f800000u);
  const uint32_t rounded = (subnormal & small) | (normal & ~small);
  const uint32_t number = (0x7e00u & nan) | (rounded & ~nan);
  Half half;
  half.bits = static_cast<uint16_t>((bits >> 16 & 0x8000u) | number);
  return half;
}

}  // namespace wisp
