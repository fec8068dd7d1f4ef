// The operations of reductions on two numbers, the same on the host and on devices. Any thread.
#pragma once

#include <type_traits>

#include "core/tensor/dtype.h"

namespace wisp {

/// The type in which elements of T are summed: unsigned for integers, so that overflow is defined;
/// f32 for f16 and bf16.
template <class T>
struct SumOf {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct SumOf<float> {
  using Type = float;
};
template <>
struct SumOf<double> {
  using Type = double;
};
template <>
struct SumOf<Half> {
  using Type = float;
};
template <>
struct SumOf<BFloat16> {
  using Type = float;
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

}  // namespace wisp
