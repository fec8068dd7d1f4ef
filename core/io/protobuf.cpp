#include "core/io/protobuf.h"

#include <cassert>

#include "core/base/number.h"

namespace wisp {
namespace {

constexpr unsigned kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5;

}  // namespace

ProtobufWriter& ProtobufWriter::varint(int field, int64_t value) {
  tag(field, kVarint);
  append_varint(static_cast<uint64_t>(value));
  return *this;
}

ProtobufWriter& ProtobufWriter::f32(int field, float value) {
  tag(field, kFixed32);
  text_ += bytes_of(value);
  return *this;
}

ProtobufWriter& ProtobufWriter::f64(int field, double value) {
  tag(field, kFixed64);
  text_ += bytes_of(value);
  return *this;
}

ProtobufWriter& ProtobufWriter::bytes(int field, std::string_view value) {
  tag(field, kLength);
  append_varint(value.size());
  text_ += value;
  return *this;
}

void ProtobufWriter::tag(int field, unsigned wire_type) {
  assert(field > 0);
  append_varint(static_cast<uint64_t>(field) << 3 | wire_type);
}

/// Seven bits per byte, the lowest first. The top bit is set if more bytes follow.
void ProtobufWriter::append_varint(uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

}  // namespace wisp
