// A loop whose steps a device's thread takes several at once: it waits where it uses what it has
// read, so reads that are to be under way together come before the first use.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/tensor/dtype.h"

namespace wisp {

/// Calls body(i, n), n a std::integral_constant, for steps [i, i + n.value): in ascending order all
/// of [0, count), kSteps at a time, then one at a time. The body reads for all its steps first.
template <int64_t kSteps, class Body>
WISP_HD inline void unrolled(int64_t count, const Body& body) {
  int64_t i = 0;
  for (; i + kSteps <= count; i += kSteps) body(i, std::integral_constant<int64_t, kSteps>{});
  for (; i < count; ++i) body(i, std::integral_constant<int64_t, 1>{});
}

}  // namespace wisp
