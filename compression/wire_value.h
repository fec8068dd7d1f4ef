// Number formats on the wire: f32, f16 or bf16, gathered or summed; and natural (a sign and a power
// of two), gathered only. Pure; any thread.
#pragma once

#include <type_traits>

#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace wisp {

/// Calls visit(T()) with the T for f32, f16 or bf16.
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

/// The largest T such that a sum of `count` of them does not overflow.
template <class T>
float largest_summand(int count) {
  T most(kLargest<T> / static_cast<float>(count));
  if (static_cast<float>(most) * static_cast<float>(count) > kLargest<T>) --most.bits;
  return static_cast<float>(most);
}
template <>
inline float largest_summand<float>(int count) {
  return 0.99999f * kLargest<float> / static_cast<float>(count);  // margin for rounded partial sums
}

/// `value`, clamped to [-most, most].
WISP_HD inline float within(float most, float value) {
  return value < -most ? -most : value > most ? most : value;
}

/// A float without its mantissa: a sign and 8 exponent bits, 9 bits in all. Conversion from float
/// rounds the magnitude to the nearest power of two, ties up, at most 2^127. A magnitude nearer to
/// zero than to 2^-126 becomes zero. Source: Horvath et al. 2019 (natural compression). Their
/// rounding is random, which is unbiased; with a residual, rounding to nearest leaves a smaller
/// one.
struct Natural {
  uint16_t bits = 0;  // sign << 8 | exponent

  Natural() = default;
  WISP_HD explicit Natural(float value) {
    const uint32_t f = float_bits(value);
    const uint32_t exponent = ((f & 0x7fffffffu) + 0x400000u) >> 23;
    bits = static_cast<uint16_t>((f >> 31) << 8 | (exponent < 254u ? exponent : 254u));
  }
  WISP_HD explicit operator float() const {
    return float_from_bits((bits & 0x100u) << 23 | (bits & 0xffu) << 23);
  }
};

/// The T nearest to `value`, clamped to T's largest number. The cut part stays in the residual, and
/// no infinity is sent.
template <class T>
WISP_HD inline T to_wire(float value) {
  return T(value);
}

/// Conversion without branches. Half's constructor has branches, which prevent vectorisation (20
/// times slower).
template <>
WISP_HD inline Half to_wire<Half>(float value) {
  constexpr uint32_t kLargest = 0x477fe000u;  // 65504
  const uint32_t bits = float_bits(value);
  const uint32_t whole = bits & 0x7fffffffu;
  const uint32_t magnitude = whole < kLargest ? whole : kLargest;
  // Below 2^-14, the float adder rounds.
  const uint32_t subnormal = float_bits(float_from_bits(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - 0x38000000u) >> 13;
  const uint32_t small = 0u - static_cast<uint32_t>(magnitude < 0x38800000u);  // masks
  const uint32_t nan = 0u - static_cast<uint32_t>(whole > 0x7f800000u);
  const uint32_t rounded = (subnormal & small) | (normal & ~small);
  const uint32_t number = (0x7e00u & nan) | (rounded & ~nan);
  Half half;
  half.bits = static_cast<uint16_t>((bits >> 16 & 0x8000u) | number);
  return half;
}

/// Clamps by truncation: if rounding would give infinity, the upper half of the bits is kept.
template <>
WISP_HD inline BFloat16 to_wire<BFloat16>(float value) {
  const uint32_t magnitude = float_bits(value) & 0x7fffffffu;
  const bool beyond = magnitude - 0x7f7f8000u < 0x8000u;  // finite, but nearest to 2^128
  return BFloat16(beyond ? float_from_bits(float_bits(value) & 0xffff0000u) : value);
}

/// *at = value for loops: g++ does not vectorise the copy of a struct.
template <class T>
WISP_HD inline void assign(T* at, T value) {
  if constexpr (std::is_same_v<T, float>) {
    *at = value;
  } else {
    at->bits = value.bits;
  }
}

/// Formats of a list's values in a payload.
enum class WireFormat { f32, f16, bf16, natural };

constexpr const char* name_of(WireFormat format) {
  switch (format) {
    case WireFormat::f32:
      return "f32";
    case WireFormat::f16:
      return "f16";
    case WireFormat::bf16:
      return "bf16";
    case WireFormat::natural:
      return "natural";
  }
  throw Error("name_of: not a format of values");
}

/// Bits of the smallest magnitude that does not become zero on the wire.
constexpr uint32_t least_magnitude(WireFormat format) {
  switch (format) {
    case WireFormat::f32:
      return 1;
    case WireFormat::f16:
      return 0x33000001u;  // above 2^-25, a tie that rounds to zero
    case WireFormat::bf16:
      return 0x8001u;  // above 2^-134, a tie that rounds to zero
    case WireFormat::natural:
      return 0x400000u;  // 2^-127, a tie that rounds up
  }
  throw Error("least_magnitude: not a format of values");
}

/// Calls f(float{}), f(Half{}), f(BFloat16{}) or f(Natural{}).
template <class F>
void dispatch_wire(WireFormat format, const F& f) {
  switch (format) {
    case WireFormat::f32:
      return f(float{});
    case WireFormat::f16:
      return f(Half{});
    case WireFormat::bf16:
      return f(BFloat16{});
    case WireFormat::natural:
      return f(Natural{});
  }
}

}  // namespace wisp
