// Values as they travel: f32, f16 or bf16.
#pragma once

#include "core/dtype.h"

namespace wisp {

/// The T nearest to `value`; beyond Half's range, its largest: what is cut off stays in a residual,
/// and no infinity travels.
template <class T>
WISP_HD inline T to_wire(float value) {
  return T(value);
}
template <>
WISP_HD inline Half to_wire<Half>(float value) {
  constexpr float kLargest = 65504.0f;
  const float below = value > kLargest ? kLargest : value;
  return Half(below < -kLargest ? -kLargest : below);
}

}  // namespace wisp
