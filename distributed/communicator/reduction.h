// The arithmetic of reductions, the same bits by threads, processes and on devices. Any thread.
#pragma once

#include <span>
#include <type_traits>

#include "compression/message.h"

namespace wisp {

/// The type in which elements of T are summed: unsigned for integers (overflow is defined), f32 for
/// f16 and bf16.
template <class T>
using SumOf =
    typename std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>,
                                std::conditional<std::is_same_v<T, double>, double, float>>::type;

template <class T>
struct AddOp {
  using Value = SumOf<T>;
  WISP_HD static Value combine(Value a, Value b) { return static_cast<Value>(a + b); }
};

/// The larger number; a NaN is kept.
template <class T>
struct MaxOp {
  using Value = std::conditional_t<std::is_integral_v<T>, T, SumOf<T>>;
  WISP_HD static Value combine(Value a, Value b) { return a >= b || a != a ? a : b; }
};

/// Calls visit(zero), where zero has the element's type.
template <class Visit>
auto dispatch_reduced(DType dtype, const Visit& visit) {
  if (dtype == DType::f32) return visit(float{});
  if (dtype == DType::f64) return visit(double{});
  if (dtype == DType::f16) return visit(Half{});
  if (dtype == DType::bf16) return visit(BFloat16{});
  if (dtype == DType::i32) return visit(int32_t{});
  if (dtype == DType::i64) return visit(int64_t{});
  if (dtype == DType::u8) return visit(uint8_t{});
  WISP_CHECK(dtype == DType::u32, "a reduction of what is no dtype");
  return visit(uint32_t{});
}

/// into[i] = op over source[i] of all sources, in their order, for n elements of host memory. Sums
/// are rounded once, those of integers wrap; max keeps a NaN. `into` may be one of the sources.
void reduce_elements(std::span<const std::byte* const> sources, std::byte* into, int64_t n,
                     DType dtype, ReduceOp op);

}  // namespace wisp
