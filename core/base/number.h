// Numbers in text and in bytes. Any thread.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace wisp {

/// The number that is the whole of `text`, as std::from_chars reads it; none for any other text.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  return failure == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

/// The bytes of a number, little-endian like all supported machines.
template <class Number>
std::string bytes_of(Number value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// The unsigned number of which `bytes`, eight at most, are the digits.
constexpr uint64_t unsigned_in(std::string_view bytes, std::endian order) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t at = order == std::endian::big ? i : bytes.size() - 1 - i;
    value = value << 8 | static_cast<unsigned char>(bytes[at]);
  }
  return value;
}

}  // namespace wisp
