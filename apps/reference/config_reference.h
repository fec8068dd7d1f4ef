// What a config may say.
#pragma once

#include <set>
#include <string>

namespace wisp {

/// Every key with type, default, unit and meaning, as Markdown: those of each run, then those of
/// each model, data set and compression method that is linked in. docs/config.md is this text.
std::string config_reference();

/// The names of all those keys.
std::set<std::string> config_keys();

}  // namespace wisp
