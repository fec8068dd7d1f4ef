// Keys of components that a later file or the command line replaced: they fall away.
#pragma once

#include <string>
#include <vector>

#include "core/io/config.h"

namespace wisp {

/// Finishes `config`, all of whose components are bound. A key that none of them knows is forgotten
/// if components that were chosen when it was given, or later, knew it and have been replaced
/// since. Returns a line that names such keys and their places, if there are any; throws UnknownKey
/// for any other. `methods`: of compression, for messages.
std::vector<std::string> finish(Config& config, const std::string& methods);

}  // namespace wisp
