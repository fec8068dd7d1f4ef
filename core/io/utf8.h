// Checks and iteration of UTF-8 text. Any thread.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace wisp {

/// Throws Error with the place of the first byte that is not valid UTF-8.
void check_utf8(std::string_view text);

/// Whether a text is valid UTF-8.
bool is_utf8(std::string_view text);

/// The bytes of the character that a text begins with; 0 if it begins with none. Source: The
/// Unicode Standard, table 3-7.
size_t character_bytes(std::string_view text);

/// The number of characters of a valid UTF-8 text.
size_t count_characters(std::string_view text);

/// The characters of a valid UTF-8 text, as views of it.
std::vector<std::string_view> characters_of(std::string_view text);

/// The longest beginning of at most `most` bytes that does not end within a character.
std::string_view beginning_of(std::string_view text, size_t most);

/// Takes the first line off `text`, and returns it without its line feed.
std::string_view take_line(std::string_view& text);

/// The words of `line` between ASCII white space, in order, as views of `line`.
std::vector<std::string_view> split_words(std::string_view line);

}  // namespace wisp
