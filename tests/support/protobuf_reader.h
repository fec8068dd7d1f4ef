// A reader of protobuf messages, for tests of core/io/protobuf.h. Any thread.
#pragma once

#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"

namespace wisp {

/// The values of one message by field, in order, numbers and texts separately.
struct ProtobufFields {
  std::map<int, std::vector<uint64_t>> numbers;  // varint, fixed32 and fixed64, as bits
  std::map<int, std::vector<std::string>> texts;

  explicit ProtobufFields(std::string_view bytes) {
    while (!bytes.empty()) {
      const uint64_t tag = take_varint(bytes);
      const int field = static_cast<int>(tag >> 3);
      switch (tag & 7) {
        case 0:
          numbers[field].push_back(take_varint(bytes));
          break;
        case 1:
          numbers[field].push_back(take_fixed(bytes, 8));
          break;
        case 2:
          texts[field].emplace_back(take(bytes, take_varint(bytes)));
          break;
        case 5:
          numbers[field].push_back(take_fixed(bytes, 4));
          break;
        default:
          throw Error(concat("wire type ", tag & 7));
      }
    }
  }

  int64_t number(int field, size_t i = 0) const {
    return static_cast<int64_t>(numbers.at(field).at(i));
  }
  const std::string& text(int field, size_t i = 0) const { return texts.at(field).at(i); }
  ProtobufFields message(int field, size_t i = 0) const { return ProtobufFields(text(field, i)); }
  size_t count(int field) const { return texts.count(field) ? texts.at(field).size() : 0; }

 private:
  static std::string_view take(std::string_view& bytes, uint64_t count) {
    WISP_CHECK(count <= bytes.size(), "a field of ", count, " bytes, ", bytes.size(), " are left");
    const std::string_view taken = bytes.substr(0, count);
    bytes.remove_prefix(count);
    return taken;
  }
  static uint64_t take_fixed(std::string_view& bytes, size_t count) {
    uint64_t value = 0;
    std::memcpy(&value, take(bytes, count).data(), count);
    return value;
  }
  static uint64_t take_varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(bytes, 1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  }
};

}  // namespace wisp
