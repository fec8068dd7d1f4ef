// Reading of JSON, whose nesting is bounded here for all readers, and of typed values in it. Any
// thread.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/io/utf8.h"

namespace wisp {

/// The most lists and objects around a value. Deeper ones would exhaust the stack of a recursion.
constexpr int kMostJsonDepth = 64;

/// Whether an object may have a key several times. `depth` is 1 for the keys of the whole text.
using MayRepeat = std::function<bool(int depth, const std::string& key)>;

/// Parses a text. Throws Error, without a path, for text that is no JSON, for deeper nesting than
/// kMostJsonDepth, for a number too large for a double, and for a key that an object has twice.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, const MayRepeat& may_repeat = {});

extern template nlohmann::json parse_json(std::string_view, const MayRepeat&);
extern template nlohmann::ordered_json parse_json(std::string_view, const MayRepeat&);

/// The most bytes of a file that is read; a trace may have hundreds of megabytes.
constexpr int64_t kMostJsonBytes = int64_t{1} << 30;

/// Parses a file. Throws Error with the path like read_whole_file() and parse_json().
template <class Json = nlohmann::json>
Json read_json(const std::string& path);

extern template nlohmann::json read_json(const std::string&);
extern template nlohmann::ordered_json read_json(const std::string&);

/// The value for messages, cut after a few dozen characters.
template <class Json>
std::string shown(const Json& value) {
  constexpr size_t kMost = 60;
  const std::string text =
      value.is_structured() && value.size() > kMost ? value.type_name() : value.dump();
  return text.size() > kMost ? std::string(beginning_of(text, kMost)) + "…" : text;
}

template <class T>
constexpr bool is_list = false;
template <class T>
constexpr bool is_list<std::vector<T>> = true;

/// The value as bool, number, string, or vector of those. Throws Error, which names it `name`, for
/// a value of another type, and for a number that T does not hold.
template <class T, class Json>
T json_as(const Json& value, const std::string& name) {
  const auto check = [&](bool fits, const char* expected) {
    WISP_CHECK(fits, name, " is ", shown(value), ", expected ", expected);
  };
  if constexpr (is_list<T>) {
    check(value.is_array(), "a list");
    T list;
    for (const Json& item : value)
      list.push_back(
          json_as<typename T::value_type>(item, concat(name, "[", std::ssize(list), "]")));
    return list;
  } else if constexpr (std::same_as<T, std::string>) {
    check(value.is_string(), "a text");
    return value.template get<T>();
  } else if constexpr (std::same_as<T, bool>) {
    check(value.is_boolean(), "true or false");
    return value.template get<T>();
  } else if constexpr (std::floating_point<T>) {
    check(value.is_number(), "a number");
    return value.template get<T>();
  } else {
    check(value.is_number_integer(), "a whole number");
    const bool fits = value.is_number_unsigned() ? std::in_range<T>(value.template get<uint64_t>())
                                                 : std::in_range<T>(value.template get<int64_t>());
    WISP_CHECK(fits, name, " is ", shown(value), ", expected a whole number from ",
               int64_t{std::numeric_limits<T>::min()}, " to ", std::numeric_limits<T>::max());
    return value.template get<T>();
  }
}

/// The member of an object as T. Throws Error like json_as(), and if there is none.
template <class T, class Json>
T json_at(const Json& object, const std::string& key) {
  WISP_CHECK(object.is_object() && object.contains(key), "there is no ", key);
  return json_as<T>(object[key], key);
}

/// The member of an object as T, or `otherwise` if there is none. Throws Error like json_as().
template <class T, class Json>
T json_or(const Json& object, const std::string& key, const T& otherwise) {
  const bool there = object.is_object() && object.contains(key);
  return there ? json_as<T>(object[key], key) : otherwise;
}

/// A list or an object that is a member of an object. Throws Error if there is none.
template <class Json>
const Json& json_part(const Json& object, const std::string& key) {
  WISP_CHECK(object.is_object() && object.contains(key), "there is no ", key);
  WISP_CHECK(object[key].is_structured(), key, " is ", shown(object[key]),
             ", expected a list or an object");
  return object[key];
}

}  // namespace wisp
