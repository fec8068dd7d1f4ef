// What no TOML text may have, because toml++ 3.3 does not bear it. It has a limit for nested values
// but none for dotted keys: it makes a table of each part, and a tree of a hundred thousand levels
// ends in a stack overflow. A character beyond ASCII where TOML has none is undefined behaviour
// (is_non_ascii_horizontal_whitespace).
#pragma once

#include <string>
#include <string_view>

namespace wisp {

constexpr int kMaxKeyParts = 32;

/// Throws Error with name:line for a key of more than kMaxKeyParts parts, and for a character
/// beyond ASCII outside strings and comments. A byte order mark may stand in front.
void check_toml_limits(std::string_view text, const std::string& name);

}  // namespace wisp
