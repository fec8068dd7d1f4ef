// A few neighbouring values that a thread processes together: 16 bytes, the most that a GPU's
// thread reads or writes at once. With one element per thread, 2 bytes of bf16, the threads of a
// GPU would request too little to keep its memory busy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "core/tensor/dtype.h"

namespace wisp {

template <class T>
constexpr int64_t kFew = 16 / int64_t{sizeof(T)};

/// kCount values as in memory, aligned as a whole, to at most 16 bytes.
template <class T, int64_t kCount>
struct alignas(kCount * sizeof(T) < 16 ? kCount * sizeof(T) : 16) Packed {
  T at[kCount];

  WISP_HD static Packed load(const T* from) { return *reinterpret_cast<const Packed*>(from); }
  WISP_HD void store_to(T* to) const { *reinterpret_cast<Packed*>(to) = *this; }
};

/// kCount numbers in the compute type of T, loaded from and stored to Packed.
template <class T, int64_t kCount>
class Few {
 public:
  Few() = default;
  WISP_HD explicit Few(const T* from) {
    const auto raw = Packed<T, kCount>::load(from);
    for (int64_t k = 0; k < kCount; ++k) value_[k] = wide(raw.at[k]);
  }
  WISP_HD void store_to(T* to) const { packed().store_to(to); }
  WISP_HD Packed<T, kCount> packed() const {
    Packed<T, kCount> raw;
    for (int64_t k = 0; k < kCount; ++k) store(raw.at + k, value_[k]);
    return raw;
  }
  WISP_HD Wide<T>& operator[](int64_t k) { return value_[k]; }
  WISP_HD const Wide<T>& operator[](int64_t k) const { return value_[k]; }

 private:
  Wide<T> value_[kCount];
};

/// Writes a few gradients, or adds them to `into`.
template <class T, int64_t kCount>
WISP_HD void deposit(T* into, const Few<T, kCount>& gradient, bool accumulate) {
  Few<T, kCount> sum = gradient;
  if (accumulate) {
    const Few<T, kCount> before(into);
    for (int64_t k = 0; k < kCount; ++k) sum[k] = before[k] + gradient[k];
  }
  sum.store_to(into);
}

/// Calls call(std::integral_constant) with the number of channels per thread. The number is
/// kFew<T>, or 1 if `channels` is no multiple of it or one of `tensors`, which may be null, is not
/// aligned to 16 bytes.
template <class T, class Call>
void with_few(int64_t channels, std::initializer_list<const void*> tensors, const Call& call) {
  const bool aligned = std::all_of(tensors.begin(), tensors.end(), [](const void* begin) {
    return reinterpret_cast<uintptr_t>(begin) % 16 == 0;
  });
  if (aligned && channels % kFew<T> == 0) return call(std::integral_constant<int64_t, kFew<T>>{});
  call(std::integral_constant<int64_t, 1>{});
}

}  // namespace wisp
