// The one exception type of Wisp and the check macro that raises it.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace wisp {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The arguments written one after the other with operator<<.
template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

}  // namespace wisp

/// Throws Error with the concatenated message if `condition` is false. Say the operation, both
/// values and what would be right: WISP_CHECK(a == b, "conv2d: input has ", a, " channels, weight
/// expects ", b).
#define WISP_CHECK(condition, ...)                      \
  do {                                                  \
    if (!(condition)) [[unlikely]]                      \
      throw ::wisp::Error(::wisp::concat(__VA_ARGS__)); \
  } while (false)
