// What no TOML text may have. The parser has a limit for nested values but none for dotted keys: it
// makes a table of each part, and a tree of a hundred thousand levels ends in a stack overflow.
#pragma once

#include <string>
#include <string_view>

namespace wisp {

constexpr int kMaxKeyParts = 32;

/// Throws Error with name:line for a key of more than kMaxKeyParts parts.
void check_toml_limits(std::string_view text, const std::string& name);

}  // namespace wisp
