// What a pool throws that has no room left, so that whoever knows what it was for can say so.
#pragma once

#include "core/base/error.h"

namespace wisp {

class OutOfMemory : public Error {
 public:
  using Error::Error;
};

}  // namespace wisp
