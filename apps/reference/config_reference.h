// The reference of all config keys, as text. Any thread.
#pragma once

#include <string>
#include <vector>

#include "core/io/config.h"

namespace wisp {

/// Every key with type, default, unit and meaning, as Markdown: first the keys of every run, then
/// those of each linked model, data set, optimizer, schedule and compression method. docs/config.md
/// is this text.
std::string config_reference();

/// All keys of config_reference(). A name that several components bind occurs once for each.
std::vector<ConfigKey> config_keys();

/// The words that a key accepts, with one component or another; true and false for a bool. Empty
/// for numbers and for free text.
std::vector<std::string> words_of_key(const std::string& key);

}  // namespace wisp
