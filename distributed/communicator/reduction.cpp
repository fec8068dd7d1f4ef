#include "distributed/communicator/reduction.h"

#include <algorithm>
#include <type_traits>

namespace wisp {
namespace {

constexpr int64_t kBlock = 1024;  // elements summed at a time, in the first cache

/// What elements of T are summed in: unsigned for integers, whose overflow is then defined.
template <class T>
struct Sum {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct Sum<float> {
  using Type = float;
};
template <>
struct Sum<double> {
  using Type = double;
};
template <>
struct Sum<Half> {
  using Type = float;
};
template <>
struct Sum<BFloat16> {
  using Type = float;
};

template <class T>
struct Add {
  using Value = typename Sum<T>::Type;
  static Value combine(Value a, Value b) { return static_cast<Value>(a + b); }
};

template <class T>
struct Max {
  using Value = std::conditional_t<std::is_integral_v<T>, T, typename Sum<T>::Type>;
  static Value combine(Value a, Value b) { return a >= b || a != a ? a : b; }
};

template <class T, class Op>
void reduce_block(std::span<const std::byte* const> sources, std::byte* into, int64_t begin,
                  int64_t n) {
  using Value = typename Op::Value;
  Value total[kBlock];
  const T* first = reinterpret_cast<const T*>(sources[0]) + begin;
  for (int64_t i = 0; i < n; ++i) total[i] = static_cast<Value>(first[i]);
  for (const std::byte* source : sources.subspan(1)) {
    const T* next = reinterpret_cast<const T*>(source) + begin;
    for (int64_t i = 0; i < n; ++i) total[i] = Op::combine(total[i], static_cast<Value>(next[i]));
  }
  T* out = reinterpret_cast<T*>(into) + begin;
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(total[i]);
}

template <class T, class Op>
void reduce(std::span<const std::byte* const> sources, std::byte* into, int64_t n) {
  for (int64_t begin = 0; begin < n; begin += kBlock)
    reduce_block<T, Op>(sources, into, begin, std::min(kBlock, n - begin));
}

template <class T>
void reduce_typed(std::span<const std::byte* const> sources, std::byte* into, int64_t n,
                  ReduceOp op) {
  if (op == ReduceOp::sum) return reduce<T, Add<T>>(sources, into, n);
  reduce<T, Max<T>>(sources, into, n);
}

}  // namespace

void reduce_elements(std::span<const std::byte* const> sources, std::byte* into, int64_t n,
                     DType dtype, ReduceOp op) {
  switch (dtype) {
    case DType::f32:
      return reduce_typed<float>(sources, into, n, op);
    case DType::f64:
      return reduce_typed<double>(sources, into, n, op);
    case DType::f16:
      return reduce_typed<Half>(sources, into, n, op);
    case DType::bf16:
      return reduce_typed<BFloat16>(sources, into, n, op);
    case DType::i32:
      return reduce_typed<int32_t>(sources, into, n, op);
    case DType::i64:
      return reduce_typed<int64_t>(sources, into, n, op);
    case DType::u8:
      return reduce_typed<uint8_t>(sources, into, n, op);
    case DType::u32:
      return reduce_typed<uint32_t>(sources, into, n, op);
  }
  throw Error("reduce_elements: not a dtype");
}

}  // namespace wisp
