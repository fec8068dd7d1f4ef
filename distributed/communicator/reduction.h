// The arithmetic of reductions, the same bits by threads, processes and on devices. Any thread.
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "compression/message.h"
#include "core/base/error.h"
#include "core/tensor/dtype.h"

namespace wisp {

/// The type in which elements of T are summed: unsigned for integers (overflow is defined), f32 for
/// f16 and bf16.
template <class T>
struct SumOf {
  static constexpr bool kIn32 =
      std::is_same_v<T, float> || std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;
  static_assert(std::is_integral_v<T> || std::is_same_v<T, double> || kIn32);
  using Type = typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                           std::conditional<kIn32, float, double>>::type;
};

template <class T>
struct AddOp {
  using Value = typename SumOf<T>::Type;
  WISP_HD static Value combine(Value a, Value b) { return static_cast<Value>(a + b); }
};

/// The larger number; a NaN is kept.
template <class T>
struct MaxOp {
  using Value = std::conditional_t<std::is_integral_v<T>, T, typename SumOf<T>::Type>;
  WISP_HD static Value combine(Value a, Value b) { return a >= b || a != a ? a : b; }
};

/// Calls visit(zero), where zero has the element's type.
template <class Visit>
auto dispatch_reduced(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(float{});
    case DType::f64:
      return visit(double{});
    case DType::f16:
      return visit(Half{});
    case DType::bf16:
      return visit(BFloat16{});
    case DType::i32:
      return visit(int32_t{});
    case DType::i64:
      return visit(int64_t{});
    case DType::u8:
      return visit(uint8_t{});
    case DType::u32:
      return visit(uint32_t{});
  }
  throw Error("a reduction of what is no dtype");
}

/// into[i] = op over source[i] of all sources, in their order, for n elements of host memory. f16
/// and bf16 are summed in f32 and rounded once; integer sums wrap; max keeps a NaN. `into` may be
/// one of the sources.
void reduce_elements(std::span<const std::byte* const> sources, std::byte* into, int64_t n,
                     DType dtype, ReduceOp op);

}  // namespace wisp
