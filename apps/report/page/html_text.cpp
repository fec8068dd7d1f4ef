#include "apps/report/page/html_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "core/io/utf8.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

std::string escaped(char c) {
  constexpr std::pair<char, const char*> kEscapes[] = {
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  for (const auto& [plain, escape] : kEscapes) {
    if (c == plain) return escape;
  }
  return std::string(1, c);
}

}  // namespace

std::string html_text(std::string_view text) {
  std::string html;
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = visible_bytes(text.substr(at));
    if (bytes > 1) {
      html += text.substr(at, bytes);
    } else {
      html += bytes == 1 ? escaped(text[at]) : "?";
    }
    at += std::max<size_t>(character_bytes(text.substr(at)), 1);
  }
  return html;
}

bool html_keeps(std::string_view text) {
  size_t bytes = 0;
  for (size_t at = 0; at < text.size(); at += bytes) {
    bytes = visible_bytes(text.substr(at));
    if (bytes == 0) return false;
  }
  return true;
}

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
