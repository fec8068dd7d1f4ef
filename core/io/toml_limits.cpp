#include "core/io/toml_limits.h"

#include <algorithm>

#include "core/base/error.h"

namespace wisp {
namespace {

/// The end of the string or comment that begins at `at`. In invalid TOML it may differ from the
/// parser's, but only behind the parser's first error.
size_t end_of_quoted(std::string_view text, size_t at) {
  const char quote = text[at];
  if (quote == '#') return std::min(text.find('\n', at), text.size());
  const std::string triple(3, quote);
  const bool lines = text.substr(at, 3) == triple;
  for (at += lines ? 3 : 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\') {
      ++at;
    } else if (lines && text.substr(at, 3) == triple) {
      at += 3;  // the string may end with two quotes of its own
      for (int own = 0; own < 2 && at < text.size() && text[at] == quote; ++own) ++at;
      return at;
    } else if (!lines && text[at] == quote) {
      return at + 1;
    } else if (!lines && text[at] == '\n') {
      return at;
    }
  }
  return text.size();
}

}  // namespace

void check_toml_limits(std::string_view text, const std::string& name) {
  int parts = 1;
  for (size_t at = text.starts_with("\xef\xbb\xbf") ? 3 : 0; at < text.size();) {
    const char c = text[at];
    if (c == '"' || c == '\'' || c == '#') {
      at = end_of_quoted(text, at);
      continue;
    }
    if (c == '.') ++parts;
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) parts = 1;
    const auto place = [&] {
      return concat(name, ":", 1 + std::count(text.begin(), text.begin() + at, '\n'), ": ");
    };
    WISP_CHECK(parts <= kMaxKeyParts, place(), "a key has more than ", kMaxKeyParts, " parts");
    WISP_CHECK(static_cast<unsigned char>(c) < 0x80, place(),
               "a character beyond ASCII, which only strings and comments may have");
    ++at;
  }
}

}  // namespace wisp
