// Limits for TOML text, beyond which toml++ 3.3 fails. It limits nested values but not dotted keys:
// each part of a key becomes a table, and a hundred thousand levels overflow the stack. A character
// beyond ASCII outside strings and comments is undefined behaviour in it
// (is_non_ascii_horizontal_whitespace). Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wisp {

/// The most bytes of a config file.
constexpr int64_t kMostConfigBytes = int64_t{16} << 20;

constexpr int kMaxKeyParts = 32;

/// Throws Error with name:line for a key of more than kMaxKeyParts parts, or a character beyond
/// ASCII outside strings and comments. The text may begin with a byte order mark.
void check_toml_limits(std::string_view text, const std::string& name);

}  // namespace wisp
