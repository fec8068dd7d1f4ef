// Writing of a value to a gradient, and its type, for the backward functions of ops. Used by the
// stream's thread.
#pragma once

#include "core/autograd.h"

namespace wisp {

template <class T>
WISP_HD inline void deposit(T* into, Wide<T> value, bool accumulate) {
  store(into, accumulate ? wide(*into) + value : value);
}

/// Writes `gradient` to the slot, or adds it if the slot accumulates. Both have the same number of
/// elements; types may differ.
void deposit(const Stream& stream, const Tensor& gradient, const GradSlot& slot);

/// `x` if it has the type, else a copy.
Tensor in_type(DType type, const Tensor& x, const Stream& stream, MemoryPool& pool);

}  // namespace wisp
