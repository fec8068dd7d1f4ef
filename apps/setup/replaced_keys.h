// A check for unknown keys that drops the keys of components which a later file or the command line
// replaced. Any thread.
#pragma once

#include <string>
#include <vector>

#include "core/io/config.h"

namespace wisp {

/// Finishes `config`, whose components are all bound. A key that no component knows is dropped if a
/// component that was chosen then or later knew it, and has been replaced since. Returns a line
/// that names the dropped keys and their places, or nothing. Throws UnknownKey for any other key.
/// `methods` names the compression methods in messages.
std::vector<std::string> finish(Config& config, const std::string& methods);

}  // namespace wisp
