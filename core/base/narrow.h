// Conversion of sizes and counts to the narrower integers of a library or a wire format. Any
// thread.
#pragma once

#include <cstdint>
#include <limits>
#include <utility>

#include "core/base/error.h"

namespace wisp {

/// `value` as a To. Throws Error, which names the value as `what`, if To cannot hold it.
template <class To>
constexpr To narrow(int64_t value, const char* what) {
  WISP_CHECK(std::in_range<To>(value), what, ": ", value, ", expected ",
             int64_t{std::numeric_limits<To>::min()}, " to ",
             int64_t{std::numeric_limits<To>::max()}, ", which fit into ", 8 * sizeof(To), " bits");
  return static_cast<To>(value);
}

}  // namespace wisp
