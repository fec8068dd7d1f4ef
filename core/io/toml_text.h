// Plain values as TOML text that reads back exactly. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace wisp {

std::string to_toml(bool value);
std::string to_toml(int value);
std::string to_toml(int64_t value);
std::string to_toml(double value);
std::string to_toml(const std::string& value);

template <class T>
std::string to_toml(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + to_toml(value);
  return "[" + text + "]";
}

/// One part of a dotted key, in quotes only if it needs them.
std::string to_toml_key(std::string_view key);
/// Whether no part of a dotted key needs quotes.
bool is_bare_dotted(std::string_view key);

}  // namespace wisp
