// The version of this build of Wisp. Any thread.
#pragma once

#include <string>

namespace wisp {

/// "0.1.0 (COMMIT)". A "+" follows COMMIT if the tree had changes when it was built.
std::string program_version();

}  // namespace wisp
