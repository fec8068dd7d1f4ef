// A reader of TensorBoard's event files, for tests. It checks the frames and returns messages as
// field numbers and contents.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/io/checksum.h"

namespace wisp {

/// A field of a message: a number's bits, or bytes.
struct ProtobufField {
  int number = 0;
  uint64_t bits = 0;
  std::string bytes;

  double f64() const {
    double value = 0.0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  float f32() const {
    const auto low = static_cast<uint32_t>(bits);
    float value = 0.0f;
    std::memcpy(&value, &low, sizeof value);
    return value;
  }
};

inline uint64_t little_endian(const std::string& text, size_t at, size_t bytes) {
  WISP_CHECK(at + bytes <= text.size(), "event file: cut off at ", at);
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
  return value;
}

inline uint64_t take_varint(const std::string& text, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = little_endian(text, at++, 1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
}

inline std::vector<ProtobufField> fields_of(const std::string& message) {
  std::vector<ProtobufField> fields;
  for (size_t at = 0; at < message.size();) {
    const uint64_t tag = take_varint(message, at);
    ProtobufField field{static_cast<int>(tag >> 3), 0, ""};
    const uint64_t type = tag & 7;
    if (type == 0) {
      field.bits = take_varint(message, at);
    } else if (type == 2) {
      const uint64_t bytes = take_varint(message, at);
      field.bytes = message.substr(at, bytes);
      at += bytes;
    } else {
      const size_t bytes = type == 1 ? 8 : 4;
      field.bits = little_endian(message, at, bytes);
      at += bytes;
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

/// The data of each record. Throws Error if a checksum is wrong.
inline std::vector<std::string> records_of(const std::string& file) {
  const auto check = [](const std::string& data, uint64_t masked) {
    const uint32_t rotated = static_cast<uint32_t>(masked) - 0xa282ead8u;
    const uint32_t crc = (rotated << 15) | (rotated >> 17);
    WISP_CHECK(crc == crc32c(data.data(), data.size()), "event file: wrong checksum");
  };
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    const uint64_t bytes = little_endian(file, at, 8);
    check(file.substr(at, 8), little_endian(file, at + 8, 4));
    records.push_back(file.substr(at + 12, bytes));
    check(records.back(), little_endian(file, at + 12 + bytes, 4));
    at += 16 + bytes;
  }
  return records;
}

struct ReadEvent {
  double time = 0.0;
  int64_t step = 0;
  std::string version;
  bool start = false;
  std::vector<std::pair<std::string, float>> scalars;
};

inline std::vector<ReadEvent> read_events(const std::string& file) {
  std::vector<ReadEvent> events;
  for (const std::string& record : records_of(file)) {
    ReadEvent event;
    for (const ProtobufField& field : fields_of(record)) {
      if (field.number == 1) event.time = field.f64();
      if (field.number == 2) event.step = static_cast<int64_t>(field.bits);
      if (field.number == 3) event.version = field.bytes;
      if (field.number == 7) event.start = fields_of(field.bytes).at(0).bits == 1;
      if (field.number != 5) continue;
      for (const ProtobufField& value : fields_of(field.bytes)) {
        const auto parts = fields_of(value.bytes);
        event.scalars.emplace_back(parts.at(0).bytes, parts.at(1).f32());
      }
    }
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace wisp
