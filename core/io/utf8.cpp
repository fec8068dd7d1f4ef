#include "core/io/utf8.h"

#include <algorithm>

#include "core/base/error.h"

namespace wisp {
namespace {

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// The number of bytes before the first one that is not valid UTF-8.
size_t valid_bytes(std::string_view text) {
  size_t at = 0;
  while (true) {
    while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
    const size_t bytes = character_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
}

}  // namespace

size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](size_t i) { return !begins_character(text[i]); };
  if (text.empty()) return 0;
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || text.size() < 2 || !follows(1)) return 0;
  if (first < 0xe0) return 2;
  if (text.size() < 3 || !follows(2)) return 0;
  if (first == 0xe0 && byte(1) < 0xa0) return 0;  // a shorter form exists
  if (first == 0xed && byte(1) > 0x9f) return 0;  // half of a UTF-16 pair
  if (first < 0xf0) return 3;
  if (text.size() < 4 || !follows(3)) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return 4;
}

void check_utf8(std::string_view text) {
  const size_t at = valid_bytes(text);
  WISP_CHECK(at == text.size(), "byte ", at, ", in line ",
             1 + std::count(text.begin(), text.begin() + at, '\n'), ", is no UTF-8");
}

bool is_utf8(std::string_view text) { return valid_bytes(text) == text.size(); }

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, begins_character));
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

std::string_view beginning_of(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && !begins_character(text[most])) --most;
  return text.substr(0, most);
}

std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
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
