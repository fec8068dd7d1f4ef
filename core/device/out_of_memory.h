// The exception of a memory pool without room. Callers catch it to say what the memory was for.
#pragma once

#include "core/base/error.h"

namespace wisp {

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace wisp
