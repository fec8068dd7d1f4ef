// Conversions of a parsed TOML document's nodes. Only config.cpp and config_tree.h include this
// header, because toml++ is slow to compile. Any thread.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#define TOML_ENABLE_FORMATTERS 0
// `a = [}` would fail an assertion before the parser reports the error
#define TOML_ASSERT(expression) static_assert(true)
#define TOML_MAX_NESTED_VALUES 32  // lists and inline tables: the parser and text_of() recurse
#include <toml++/toml.h>

#include "core/io/toml_text.h"

namespace wisp {

/// The node as TOML on one line.
inline std::string text_of(const toml::node& node) {
  if (const auto* v = node.as_boolean()) return to_toml(v->get());
  if (const auto* v = node.as_integer()) return to_toml(v->get());
  if (const auto* v = node.as_floating_point()) return to_toml(v->get());
  if (const auto* v = node.as_string()) return to_toml(v->get());
  std::ostringstream text;
  if (const auto* array = node.as_array()) {
    for (const toml::node& item : *array) text << (text.tellp() ? ", " : "") << text_of(item);
    return "[" + text.str() + "]";
  }
  if (const auto* table = node.as_table()) {
    for (const auto& [key, value] : *table) {
      text << (text.tellp() ? ", " : " ") << to_toml_key(key.str()) << " = " << text_of(value);
    }
    return "{" + text.str() + " }";
  }
  if (const auto* v = node.as_date()) text << v->get();
  if (const auto* v = node.as_time()) text << v->get();
  if (const auto* v = node.as_date_time()) text << v->get();
  return text.str();
}

inline const char* article_and_type(const toml::node& node) {
  if (node.is_boolean()) return "a bool";
  if (node.is_integer()) return "an integer";
  if (node.is_floating_point()) return "a number";
  if (node.is_string()) return "a string";
  if (node.is_array()) return "a list";
  return node.is_table() ? "a table" : "a date or time";
}

/// The name of a value's type.
inline std::string type_of(bool) { return "bool"; }
inline std::string type_of(int) { return "integer"; }
inline std::string type_of(int64_t) { return "integer"; }
inline std::string type_of(double) { return "number"; }
inline std::string type_of(const std::string&) { return "string"; }
template <class T>
std::string type_of(const std::vector<T>&) {
  return "list of " + type_of(T()) + "s";
}

/// Returns whether the node holds a T, and then sets `value`.
template <class T>
bool read(const toml::node& node, T& value) {
  const std::optional<T> found = node.value_exact<T>();
  if (found) value = *found;
  return found.has_value();
}

inline bool read(const toml::node& node, int& value) {
  const std::optional<int64_t> found = node.value_exact<int64_t>();
  if (!found || *found != static_cast<int>(*found)) return false;
  value = static_cast<int>(*found);
  return true;
}

inline bool read(const toml::node& node, double& value) {
  int64_t integer = 0;
  if (!read(node, integer)) return read<double>(node, value);
  value = static_cast<double>(integer);
  return true;
}

template <class T>
bool read(const toml::node& node, std::vector<T>& values) {
  const toml::array* array = node.as_array();
  if (!array) return false;
  std::vector<T> found;
  for (const toml::node& item : *array) {
    T value{};
    if (!read(item, value)) return false;
    found.push_back(std::move(value));
  }
  values = std::move(found);
  return true;
}

}  // namespace wisp
