// A few neighbours in memory that a thread treats together: 16 bytes, what a GPU's thread can read
// or write at once. With an element a thread, 2 bytes of bf16, the threads that a GPU has room for
// would ask for too little at a time to keep its memory busy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "core/tensor/dtype.h"

namespace wisp {

template <class T>
constexpr int64_t kFew = 16 / int64_t{sizeof(T)};

/// kCount numbers, in the type that T is computed in. In memory they are aligned as a whole, to 16
/// bytes at most.
template <class T, int64_t kCount>
class Few {
 public:
  Few() = default;
  WISP_HD explicit Few(const T* from) {
    const Raw raw = *reinterpret_cast<const Raw*>(from);
    for (int64_t k = 0; k < kCount; ++k) value_[k] = wide(raw.at[k]);
  }
  WISP_HD void store_to(T* to) const {
    Raw raw;
    for (int64_t k = 0; k < kCount; ++k) store(raw.at + k, value_[k]);
    *reinterpret_cast<Raw*>(to) = raw;
  }
  WISP_HD Wide<T>& operator[](int64_t k) { return value_[k]; }
  WISP_HD const Wide<T>& operator[](int64_t k) const { return value_[k]; }

 private:
  static constexpr size_t kBytes = kCount * sizeof(T);
  struct alignas(kBytes < 16 ? kBytes : 16) Raw {
    T at[kCount];
  };
  static_assert(sizeof(Raw) == kBytes);

  Wide<T> value_[kCount];
};

/// call(std::integral_constant) with how many channels a thread treats: kFew<T>, or one if rows
/// have no whole number of that, or one of `tensors`, which may be null, does not begin at 16
/// bytes.
template <class T, class Call>
void with_few(int64_t channels, std::initializer_list<const void*> tensors, const Call& call) {
  const bool aligned = std::all_of(tensors.begin(), tensors.end(), [](const void* begin) {
    return reinterpret_cast<uintptr_t>(begin) % 16 == 0;
  });
  if (aligned && channels % kFew<T> == 0) return call(std::integral_constant<int64_t, kFew<T>>{});
  call(std::integral_constant<int64_t, 1>{});
}

}  // namespace wisp
