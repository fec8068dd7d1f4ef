#include "core/io/protobuf.h"

#include <gtest/gtest.h>

namespace wisp {
namespace {

std::string hex(const ProtobufWriter& writer) {
  std::string digits;
  for (const char c : writer.text()) {
    const auto byte = static_cast<unsigned char>(c);
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

TEST(Protobuf, MatchesThePublishedExamples) {
  // protobuf.dev, "Encoding": a = 150 in field 1, "testing" in field 2, the first message in field
  // 3
  ProtobufWriter number, text, outer;
  number.varint(1, 150);
  EXPECT_EQ(hex(number), "089601");
  text.bytes(2, "testing");
  EXPECT_EQ(hex(text), "120774657374696e67");
  outer.message(3, number);
  EXPECT_EQ(hex(outer), "1a03089601");
}

TEST(Protobuf, NumbersOfEveryWidth) {
  ProtobufWriter writer;
  writer.varint(1, 0);
  writer.varint(1, 127);
  writer.varint(1, -2);
  EXPECT_EQ(hex(writer),
            "0800"
            "087f"
            "08feffffffffffffffff01");
  ProtobufWriter floats;
  floats.f32(2, 1.0f);
  floats.f64(1, -2.0);
  EXPECT_EQ(hex(floats),
            "150000803f"
            "0900000000000000c0");
}

TEST(Protobuf, FieldNumbersAndLengthsOfTwoBytes) {
  ProtobufWriter writer;
  writer.bytes(16, std::string(300, 'x'));
  EXPECT_EQ(hex(writer).substr(0, 8), "8201ac02");
  EXPECT_EQ(writer.text().size(), 4u + 300u);
}

TEST(Protobuf, AnEmptyMessageIsThere) {
  ProtobufWriter outer;
  outer.message(1, {});
  EXPECT_EQ(hex(outer), "0a00");
}

}  // namespace
}  // namespace wisp
