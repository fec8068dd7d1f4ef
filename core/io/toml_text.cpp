#include "core/io/toml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace wisp {
namespace {

bool is_bare(std::string_view key) {
  return !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || c == '_' || c == '-';
  });
}

}  // namespace

std::string to_toml(bool value) { return value ? "true" : "false"; }
std::string to_toml(int value) { return fmt::format("{}", value); }
std::string to_toml(int64_t value) { return fmt::format("{}", value); }

std::string to_toml(double value) {
  const std::string text = fmt::format("{}", value);  // the shortest text that reads back exactly
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

std::string to_toml(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      text += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      text += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      text += c;
    }
  }
  return text + '"';
}

std::string to_toml_key(std::string_view key) {
  return is_bare(key) ? std::string(key) : to_toml(std::string(key));
}

bool is_bare_dotted(std::string_view key) {
  for (size_t dot = key.find('.'); dot != key.npos; dot = key.find('.')) {
    if (!is_bare(key.substr(0, dot))) return false;
    key.remove_prefix(dot + 1);
  }
  return is_bare(key);
}

}  // namespace wisp
