// The reference of all keys of a config, as text.
#pragma once

#include <string>
#include <vector>

#include "core/io/config.h"

namespace wisp {

/// Every key with type, default, unit and meaning, as Markdown: those of each run, then those of
/// each model, data set and compression method that is linked in. docs/config.md is this text.
std::string config_reference();

/// All those keys; a name that several components bind is there for each of them.
std::vector<ConfigKey> config_keys();

/// The words that a key can be, as the error for any other word lists them; true and false of a
/// bool. Empty for numbers and for texts that may be anything.
std::vector<std::string> values_of_key(const std::string& key);

}  // namespace wisp
