#include "apps/report/page/shell_word.h"

#include <fmt/format.h>

#include "apps/report/page/html_text.h"

namespace wisp {

std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && text.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_./+-=,:@%") == text.npos;
  if (plain) return text;
  const bool kept = html_keeps(text);
  std::string word;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (!kept && (byte < 0x20 || byte >= 0x7f)) {
      word += fmt::format("\\{:03o}", byte);
    } else if (c == '\'') {
      word += kept ? "'\\''" : "\\'";
    } else {
      word += !kept && c == '\\' ? "\\\\" : std::string(1, c);
    }
  }
  return (kept ? "'" : "$'") + word + "'";
}

}  // namespace wisp
