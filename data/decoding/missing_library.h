// The error of a build without a library that a file needs. The file itself may be sound.
#pragma once

#include "core/base/error.h"

namespace wisp {

class MissingLibrary : public Error {
 public:
  using Error::Error;
};

}  // namespace wisp
