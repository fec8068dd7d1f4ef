// The error message of a call, for tests. Any thread.
#pragma once

#include <string>

#include "core/base/error.h"

namespace wisp {

/// The message of the Error that f() throws; "no error" if it throws none.
template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace wisp
