// A compression method as a run chose it. A value that owns its compressor.
#pragma once

#include <memory>
#include <string>

#include "compression/compressor.h"

namespace wisp {

/// A compressor and the segments that a policy chose for it.
struct Method {
  std::string name;
  std::unique_ptr<Compressor> compressor;
  Scope scope = Scope::layer;
};

}  // namespace wisp
