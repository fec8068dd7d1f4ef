// A loop whose steps a device's thread takes several at a time. A thread waits at the first use of
// a value that it reads, so reads that should overlap come before the first use.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/tensor/dtype.h"

namespace wisp {

/// Calls body(i, n) for steps [i, i + n.value), where n is a std::integral_constant. The calls
/// cover [0, count) in ascending order, kSteps at a time, then one at a time. The body does the
/// reads of all its steps first.
template <int64_t kSteps, class Body>
WISP_HD inline void unrolled(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kSteps <= count; i += kSteps) body(i, std::integral_constant<int64_t, kSteps>{});
  for (; i < count; ++i) body(i, std::integral_constant<int64_t, 1>{});
}

}  // namespace wisp
