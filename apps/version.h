// Which Wisp this is.
#pragma once

#include <string>

namespace wisp {

/// "0.1.0 (COMMIT)", with "+" behind the commit if the tree had changes when it was built.
std::string program_version();

}  // namespace wisp
