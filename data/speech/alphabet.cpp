#include "data/speech/alphabet.h"

#include <fmt/format.h>

#include <set>

#include "core/base/error.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

/// An ASCII letter in the other case; any other character unchanged.
std::string other_case(std::string_view character) {
  std::string other(character);
  const char c = other[0];
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) other[0] = static_cast<char>(c ^ 0x20);
  return other;
}

}  // namespace

Alphabet::Alphabet(std::string_view characters) : names_{kBlank} {
  check_utf8(characters);
  for (const std::string_view character : characters_of(characters)) {
    WISP_CHECK(numbers_.emplace(character, static_cast<int32_t>(names_.size())).second,
               "an alphabet has '", character, "' twice");
    names_.emplace_back(character);
  }
  WISP_CHECK(size() > 1, "an alphabet of no characters");
}

std::vector<int32_t> Alphabet::labels(std::string_view text) const {
  check_utf8(text);
  const std::string line = fmt::format("{}", fmt::join(split_words(text), " "));
  std::vector<int32_t> labels;
  std::set<std::string_view> unknown;
  for (const std::string_view character : characters_of(line)) {
    auto found = numbers_.find(character);
    if (found == numbers_.end()) found = numbers_.find(other_case(character));
    if (found == numbers_.end()) {
      unknown.insert(character);
    } else {
      labels.push_back(found->second);
    }
  }
  WISP_CHECK(unknown.empty(), "\"", line, "\" has '", fmt::format("{}", fmt::join(unknown, "', '")),
             "', expected characters of \"",
             fmt::format("{}", fmt::join(names_.begin() + 1, names_.end(), "")), "\"");
  return labels;
}

}  // namespace wisp
