// What the backward functions of several ops share: writing a value where a gradient goes.
#pragma once

#include "core/autograd.h"

namespace wisp {

template <class T>
WISP_HD inline void deposit(T* into, Wide<T> value, bool accumulate) {
  store(into, accumulate ? wide(*into) + value : value);
}

/// Fills the slot with `gradient`, which has as many elements, of any type.
void deposit(const Stream& stream, const Tensor& gradient, const GradSlot& slot);

}  // namespace wisp
