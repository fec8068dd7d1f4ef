#include "core/io/utf8.h"

#include <algorithm>

#include "core/base/error.h"

namespace wisp {
namespace {

/// Length of a character whose first byte is `first`; 0 if no character begins with it.
size_t length_of(unsigned char first) {
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first < 0xe0) return 2;
  if (first >= 0xe0 && first < 0xf0) return 3;
  return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/// Whether a character of `length` bytes begins here. Source: The Unicode Standard, table 3-7.
bool is_character(std::string_view text, size_t length) {
  if (length == 0 || text.size() < length) return false;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (size_t i = 1; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return false;
  switch (byte(0)) {
    case 0xe0:
      return byte(1) >= 0xa0;  // else a shorter form exists
    case 0xed:
      return byte(1) <= 0x9f;  // else half of a UTF-16 pair
    case 0xf0:
      return byte(1) >= 0x90;
    case 0xf4:
      return byte(1) <= 0x8f;
    default:
      return true;
  }
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace

void check_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = length_of(static_cast<unsigned char>(text[at]));
    WISP_CHECK(is_character(text.substr(at), length), "byte ", at, ", in line ",
               1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
               ", is no UTF-8");
    at += length;
  }
}

int64_t count_characters(std::string_view text) {
  return std::ranges::count_if(text, begins_character);
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> characters;
  while (!text.empty()) {
    const auto next = std::find_if(text.begin() + 1, text.end(), begins_character);
    characters.emplace_back(text.begin(), next);
    text.remove_prefix(characters.back().size());
  }
  return characters;
}

std::vector<std::string_view> split_words(std::string_view line) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string_view> words;
  for (size_t begin = 0, end; (begin = line.find_first_not_of(kSpace, begin)) != line.npos;
       begin = end) {
    end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
  }
  return words;
}

}  // namespace wisp
