// A writer of protobuf's wire format, field by field, in one expression or several. It has no
// schema: the caller knows the field numbers. One thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wisp {

class ProtobufWriter {
 public:
  /// Types int32, int64, uint64, bool and enum. A negative number takes ten bytes.
  ProtobufWriter& varint(int field, int64_t value);
  ProtobufWriter& f32(int field, float value);
  ProtobufWriter& f64(int field, double value);
  /// Types string and bytes.
  ProtobufWriter& bytes(int field, std::string_view value);
  ProtobufWriter& message(int field, const ProtobufWriter& value) {
    return bytes(field, value.text());
  }

  /// The message so far. A repeated field is written once per element, in order.
  const std::string& text() const { return text_; }

 private:
  void tag(int field, unsigned wire_type);
  void append_varint(uint64_t value);

  std::string text_;
};

}  // namespace wisp
