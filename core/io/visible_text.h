// Text that a terminal shows and does not obey: what names from files become before a person sees
// them. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace wisp {

/// The bytes of the character that a text begins with if a reader sees it. 0 for control characters
/// (C0, DEL, C1), separators of lines and paragraphs, characters that turn the direction of the
/// text around them, and bytes that are not UTF-8.
size_t visible_bytes(std::string_view text);

/// The text on one line: whatever is not visible becomes an escape as in C: "\n", "\x1b", "\u009b".
std::string visible(std::string_view text);

/// The same, but line feeds and tabs stay. Where such characters can only be within strings of TOML
/// or JSON, the text stays valid and means the same.
std::string visible_lines(std::string_view text);

/// A name in a line or a table: as it is; in quotes and escaped if it is empty, or has a space or
/// anything that is not visible.
std::string visible_name(std::string_view name);

}  // namespace wisp
