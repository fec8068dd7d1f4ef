#include "distributed/communicator/reduction.h"

#include <algorithm>

namespace wisp {
namespace {

constexpr int64_t kBlock = 1024;  // elements summed at a time; they fit in the first-level cache

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

}  // namespace

void reduce_elements(std::span<const std::byte* const> sources, std::byte* into, int64_t n,
                     DType dtype, ReduceOp op) {
  if (sources.size() == 1 && sources[0] == into) return;
  dispatch_reduced(dtype, [&]<class T>(T) {
    if (op == ReduceOp::sum) return reduce<T, AddOp<T>>(sources, into, n);
    reduce<T, MaxOp<T>>(sources, into, n);
  });
}

}  // namespace wisp
