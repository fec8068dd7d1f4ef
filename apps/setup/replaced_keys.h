// A check for unknown keys that drops the keys of components which a later file or the command line
// replaced. Any thread.
#pragma once

#include <string>
#include <vector>

#include "core/io/config.h"

namespace wisp {

/// Finishes `config`, whose components are all bound. Drops an unknown key if an earlier layer
/// (Config::earlier) has it and chooses a component that knows it. Returns a line that names the
/// dropped keys and their places, or nothing. Throws UnknownKey for any other unknown key.
/// `methods` names the compression methods in messages.
std::vector<std::string> finish(Config& config, const std::string& methods);

}  // namespace wisp
