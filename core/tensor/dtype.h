// Element types: the enum, the 16-bit floats, and the dispatch from the enum to a C++ type. Any
// thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/error.h"
#include "core/base/host_device.h"

namespace wisp {

enum class DType : uint8_t { f32, f64, f16, bf16, i32, i64, u8, u32 };

int64_t size_of(DType dtype);
const char* name_of(DType dtype);
/// Throws Error with the known names if there is no such type.
DType dtype_named(const std::string& name);

WISP_HD inline uint32_t float_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

WISP_HD inline float float_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// IEEE binary16. Conversion from float rounds to nearest even; overflow gives infinity.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  WISP_HD explicit Half(float value) {
    const uint32_t f = float_bits(value);
    const uint32_t sign = (f >> 16) & 0x8000u;
    const uint32_t magnitude = f & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {  // NaN
      bits = static_cast<uint16_t>(sign | 0x7e00u);
    } else if (magnitude >= 0x477ff000u) {  // rounds to 65536 or more
      bits = static_cast<uint16_t>(sign | 0x7c00u);
    } else if (magnitude < 0x38800000u) {  // subnormal: the float addition rounds
      const float shifted = float_from_bits(magnitude) + 0.5f;
      bits = static_cast<uint16_t>(sign | (float_bits(shifted) - 0x3f000000u));
    } else {
      const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
      bits = static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
    }
  }
  WISP_HD explicit operator float() const {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)
      return float_from_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude >= 0x400u) return float_from_bits(sign | ((magnitude << 13) + 0x38000000u));
    const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;  // 2^-24
    return float_from_bits(sign | float_bits(value));
  }
};

/// bfloat16: the upper half of a float. Conversion from float rounds to nearest even.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  WISP_HD explicit BFloat16(float value) {
    const uint32_t f = float_bits(value);
    const bool nan = (f & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (f >> 16) | 0x40u : (f + 0x7fffu + ((f >> 16) & 1u)) >> 16);
  }
  WISP_HD explicit operator float() const {
    return float_from_bits(static_cast<uint32_t>(bits) << 16);
  }
};

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> : std::integral_constant<DType, DType::f32> {};
template <>
struct dtype_of<double> : std::integral_constant<DType, DType::f64> {};
template <>
struct dtype_of<Half> : std::integral_constant<DType, DType::f16> {};
template <>
struct dtype_of<BFloat16> : std::integral_constant<DType, DType::bf16> {};
template <>
struct dtype_of<int32_t> : std::integral_constant<DType, DType::i32> {};
template <>
struct dtype_of<int64_t> : std::integral_constant<DType, DType::i64> {};
template <>
struct dtype_of<uint8_t> : std::integral_constant<DType, DType::u8> {};
template <>
struct dtype_of<uint32_t> : std::integral_constant<DType, DType::u32> {};

/// The type in which ops compute with activations of type T. Parameters, statistics and losses have
/// it too.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, BFloat16>, float, T>;

inline DType wide_of(DType activations) {
  return activations == DType::bf16 ? DType::f32 : activations;
}

template <class T>
WISP_HD inline Wide<T> wide(T value) {
  return static_cast<Wide<T>>(value);
}

/// *into = value, rounded to nearest even.
template <class T>
WISP_HD inline void store(T* into, Wide<T> value) {
  *into = value;
}
template <>
WISP_HD inline void store(BFloat16* into, float value) {
  into->bits = BFloat16(value).bits;  // g++ does not vectorise the copy of a struct
}

/// Calls f(float{}) or f(double{}), according to `dtype`. Throws Error for any other type.
template <class F>
decltype(auto) dispatch_float(DType dtype, const char* what, F&& f) {
  if (dtype == DType::f32) return f(float{});
  WISP_CHECK(dtype == DType::f64, what, ": dtype is ", name_of(dtype), ", expected f32 or f64");
  return f(double{});
}

/// Calls f(float{}), f(double{}) or f(BFloat16{}), the types of activations. Throws Error for any
/// other type.
template <class F>
decltype(auto) dispatch_activation(DType dtype, const char* what, F&& f) {
  if (dtype == DType::f32) return f(float{});
  if (dtype == DType::f64) return f(double{});
  WISP_CHECK(dtype == DType::bf16, what, ": dtype is ", name_of(dtype),
             ", expected f32, f64 or bf16");
  return f(BFloat16{});
}

}  // namespace wisp
