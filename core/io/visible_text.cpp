#include "core/io/visible_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/io/utf8.h"

namespace wisp {
namespace {

/// The code point of a whole UTF-8 character.
uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  uint32_t code = character.size() == 1 ? first : first & (0xffu >> (character.size() + 1));
  for (const char byte : character.substr(1))
    code = code << 6 | (static_cast<unsigned char>(byte) & 0x3fu);
  return code;
}

bool is_hidden(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x2028 ||
         code == 0x2029 ||                      // separators
         (code >= 0x202a && code <= 0x202e) ||  // embedding and override of direction
         (code >= 0x2066 && code <= 0x2069);    // isolates of direction
}

/// An escape of a hidden character, or of a byte that begins none.
std::string escape(std::string_view character, bool whole) {
  if (!whole) return fmt::format("\\x{:02x}", static_cast<unsigned char>(character[0]));
  switch (character[0]) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  const uint32_t code = code_point(character);
  // JSON and TOML let the others stand as they are in strings, and know this escape only
  return code < 0x20 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

/// Escapes what is hidden, but not the characters `kept`, and puts a backslash before those of
/// `marked`.
std::string escaped(std::string_view text, std::string_view kept, std::string_view marked) {
  std::string result;
  while (!text.empty()) {
    const size_t whole = character_bytes(text);
    const std::string_view character = text.substr(0, std::max<size_t>(whole, 1));
    if (visible_bytes(text) > 0 || kept.find(character) != kept.npos) {
      if (marked.find(character) != marked.npos) result += '\\';
      result += character;
    } else {
      result += escape(character, whole > 0);
    }
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace

size_t visible_bytes(std::string_view text) {
  const size_t bytes = character_bytes(text);
  return bytes > 0 && !is_hidden(code_point(text.substr(0, bytes))) ? bytes : 0;
}

std::string visible(std::string_view text) { return escaped(text, "", ""); }

std::string visible_lines(std::string_view text) { return escaped(text, "\n\t", ""); }

std::string visible_name(std::string_view name) {
  const bool plain = !name.empty() && name.front() != '"' && name.find(' ') == name.npos &&
                     visible(name).size() == name.size();
  return plain ? std::string(name) : '"' + escaped(name, "", "\"\\") + '"';
}

}  // namespace wisp
