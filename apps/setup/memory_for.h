// Errors of lacking memory that say which keys asked for it. Any thread.
#pragma once

#include <new>
#include <stdexcept>
#include <string>

#include "core/base/error.h"

namespace wisp {

/// Calls f(). If no memory is left, or sizes are larger than any memory, throws OutOfMemory that
/// begins with `what` and `keys`, which decide how much is needed.
template <class F>
decltype(auto) memory_for(const std::string& what, const std::string& keys, const F& f) {
  const std::string begin = what + " (" + keys + ")";
  try {
    return f();
  } catch (const OutOfMemory& failure) {
    throw OutOfMemory(begin + ": " + failure.what());
  } catch (const std::bad_alloc&) {
    throw OutOfMemory(begin + ": out of memory");
  } catch (const std::length_error&) {
    throw OutOfMemory(begin + ": out of memory: more elements than a list can have");
  }
}

}  // namespace wisp
