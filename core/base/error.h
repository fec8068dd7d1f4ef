// Wisp's exception types and the check macro. Any thread.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace wisp {

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// No memory is left. Callers catch it to say what the memory was for.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

/// Concatenates the arguments, each written with operator<<.
template <class... Args>
std::string concat(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return out.str();
}

}  // namespace wisp

/// Throws Error with the concatenated message if `condition` is false. The message names the
/// operation, both values and the expectation: WISP_CHECK(a == b, "conv2d: input has ", a, "
/// channels, weight expects ", b).
#define WISP_CHECK(condition, ...)                      \
  do {                                                  \
    if (!(condition)) [[unlikely]]                      \
      throw ::wisp::Error(::wisp::concat(__VA_ARGS__)); \
  } while (false)
