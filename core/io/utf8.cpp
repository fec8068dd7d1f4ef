#include "core/io/utf8.h"

#include <algorithm>

#include "core/base/error.h"

namespace wisp {
namespace {

/// Characters beyond ASCII: the range of the first byte, how many there are, the range of the
/// second.
struct Form {
  int first, last;
  size_t bytes;
  int least_second, most_second;
};

constexpr Form kForms[] = {
    {0xc2, 0xdf, 2, 0x80, 0xbf}, {0xe0, 0xe0, 3, 0xa0, 0xbf},  // below, a shorter form exists
    {0xe1, 0xec, 3, 0x80, 0xbf}, {0xed, 0xed, 3, 0x80, 0x9f},  // above lie halves of UTF-16 pairs
    {0xee, 0xef, 3, 0x80, 0xbf}, {0xf0, 0xf0, 4, 0x90, 0xbf},
    {0xf1, 0xf3, 4, 0x80, 0xbf}, {0xf4, 0xf4, 4, 0x80, 0x8f}};

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

}  // namespace

size_t character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  if (!text.empty() && byte(0) < 0x80) return 1;
  for (const auto& [first, last, bytes, least, most] : kForms) {
    if (text.size() < bytes || byte(0) < first || byte(0) > last) continue;
    const bool whole = byte(1) >= least && byte(1) <= most &&
                       std::none_of(text.begin() + 2, text.begin() + bytes, begins_character);
    return whole ? bytes : 0;
  }
  return 0;
}

void check_utf8(std::string_view text) {
  for (size_t at = 0, bytes; at < text.size(); at += bytes) {
    bytes = character_bytes(text.substr(at));
    WISP_CHECK(bytes > 0, "byte ", at, ", in line ",
               1 + std::count(text.begin(), text.begin() + at, '\n'), ", is no UTF-8");
  }
}

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
