#include "core/io/safetensors.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

std::string refusal(const std::string& text, int64_t data_bytes = 8) {
  return error_of([&] { SafetensorsHeader::parse(text, data_bytes); });
}

/// The text of a header with one tensor "a" and these fields.
std::string one(const std::string& shape, const std::string& offsets,
                const std::string& dtype = "F32") {
  return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
         "}}";
}

TEST(Safetensors, ReadsWhatItWrites) {
  SafetensorsHeader header;
  header.tensors["b"] = {"F32", {2, 3}, 8, 32};
  header.tensors["a"] = {"I64", {}, 0, 8};
  header.metadata["k"] = "v\"\n";
  const SafetensorsHeader again = SafetensorsHeader::parse(header.text(), 32);
  EXPECT_EQ(again.text(), header.text());
  EXPECT_EQ(again.tensors.at("b").str(), "F32 [2,3]");
  EXPECT_EQ(again.metadata.at("k"), "v\"\n");
}

TEST(Safetensors, ReadsWhatOthersWrite) {
  // no metadata, white space, a type that Wisp does not have, an empty tensor
  const SafetensorsHeader header = SafetensorsHeader::parse(
      R"( {"b": {"shape": [2], "dtype": "F4", "data_offsets": [4, 5]},
           "none": {"shape": [0, 7], "dtype": "F32", "data_offsets": [4, 4]},
           "a": {"shape": [1], "dtype": "F32", "data_offsets": [0, 4]}}   )",
      5);
  EXPECT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors.at("b").dtype, "F4");
  EXPECT_TRUE(header.metadata.empty());
  EXPECT_TRUE(SafetensorsHeader::parse("{}", 0).tensors.empty());
}

TEST(Safetensors, MetadataMayBeNone) {
  for (const char* none : {"null", "{}"}) {
    const SafetensorsHeader header = SafetensorsHeader::parse(
        concat(R"({"__metadata__": )", none,
               R"(, "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})"),
        4);
    EXPECT_TRUE(header.metadata.empty());
    EXPECT_EQ(header.tensors.size(), 1u);
  }
  for (const char* other :
       {"[]", "7", "\"a\"", "{\"a\":null}", "{\"a\":[]}", "{\"a\":{}}", "false"})
    EXPECT_NE(refusal(concat(R"({"__metadata__": )", other, "}"), 0), "no error") << other;
}

TEST(Safetensors, KnowsTheSizesOfTheFormatsTypes) {
  struct Type {
    const char* name;
    int eight;  // bytes of eight elements
  };
  for (const auto& [name, eight] :
       {Type{"BOOL", 8},    Type{"F4", 4},   Type{"F6_E2M3", 6}, Type{"F6_E3M2", 6},
        Type{"U8", 8},      Type{"I8", 8},   Type{"F8_E5M2", 8}, Type{"F8_E4M3", 8},
        Type{"F8_E8M0", 8}, Type{"I16", 16}, Type{"U16", 16},    Type{"F16", 16},
        Type{"BF16", 16},   Type{"I32", 32}, Type{"U32", 32},    Type{"F32", 32},
        Type{"C64", 64},    Type{"F64", 64}, Type{"I64", 64},    Type{"U64", 64}}) {
    EXPECT_EQ(refusal(one("[8]", concat("[0,", eight, "]"), name), eight), "no error") << name;
    EXPECT_EQ(refusal(one("[8]", "[0,0]", name), 0),
              concat("a has 0 bytes, ", name, " [8] needs ", eight));
  }
  EXPECT_EQ(refusal(one("[3]", "[0,2]", "F4"), 2), "a has 2 bytes, F4 [3] needs 12 bits");
  EXPECT_EQ(refusal(one("[8]", "[0,3]", "F3"), 3), "no error") << "a type of a later version";
}

TEST(Safetensors, RefusesTensorsThatAreNotWhereTheyCouldBe) {
  EXPECT_EQ(refusal(one("[2]", "[0,8]")), "no error");
  EXPECT_EQ(refusal(one("[2]", "[0,16]")), "a: lies at bytes 0 to 16 of 8");
  EXPECT_EQ(refusal(one("[2]", "[8,0]")), "a: lies at bytes 8 to 0 of 8");
  EXPECT_EQ(refusal(one("[2]", "[-8,0]")), "a: an offset is -8, expected a whole number");
  EXPECT_EQ(refusal(one("[2]", "[0.0,8]")), "a: an offset is 0.0, expected a whole number");
  EXPECT_EQ(refusal(one("[2]", "[0,18446744073709551615]")),
            "a: an offset is 18446744073709551615, expected a whole number");
  EXPECT_EQ(refusal(one("[2]", "[0]")), "a: data_offsets is [0], expected two numbers");
  EXPECT_EQ(refusal(one("[2]", "[0,8,8]")), "a: data_offsets is [0,8,8], expected two numbers");
  EXPECT_EQ(refusal(one("[1]", "[0,4]")), "the file has 8 bytes of data, expected 4");
  EXPECT_EQ(refusal(one("[1]", "[4,8]")), "the tensors leave a gap at byte 4 of the data");
  EXPECT_EQ(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                        "b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})"),
            "the tensors overlap at byte 4 of the data");
}

TEST(Safetensors, RefusesSizesThatAreNotTheShapes) {
  EXPECT_EQ(refusal(one("[3]", "[0,8]")), "a has 8 bytes, F32 [3] needs 12");
  EXPECT_EQ(refusal(one("[4611686018427387904,4]", "[0,8]")),
            "a has 8 bytes, F32 [4611686018427387904,4] needs too many");
  EXPECT_EQ(refusal(one("[-2]", "[0,8]")), "a: an extent is -2, expected a whole number");
  EXPECT_EQ(refusal(one("2", "[0,8]")), "a: shape is 2, expected a list");
  EXPECT_EQ(refusal(one("null", "[0,8]")), "a: shape is null, expected a list");
}

TEST(Safetensors, RefusesWhatIsNoHeader) {
  for (const char* text : {"", "{", "7", "null", "\"a\"", "{\"a\":7}", "{\"a\":{}}", "{}x",
                           "{\"__metadata__\":{\"a\":7}}", "{\"a\":{\"dtype\":7}}", "{\"\xff\":7}"})
    EXPECT_NE(refusal(text, 0), "no error") << text;
  EXPECT_EQ(refusal("[]"), "the header has a list where none belongs");
  const std::string entry = R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(refusal("{" + entry + "," + entry + "}"), "the header names a twice");
  EXPECT_EQ(refusal(one("[2],\"shape\":[2]", "[0,8]")), "the header names shape twice");
}

TEST(Safetensors, EndsEarlyWhereAHeaderWouldTakeMemoryOrStack) {
  const std::string many(1 << 20, '[');
  EXPECT_EQ(refusal(many), "the header has a list where none belongs");
  EXPECT_EQ(refusal("{\"a\":{\"b\":" + many), "the header has a list where none belongs");
  std::string nested;
  for (int i = 0; i < 100000; ++i) nested += "{\"a\":";
  EXPECT_EQ(refusal(nested), "the header is nested too deeply");
  std::string extents = "[0";
  for (int i = 0; i < 100000; ++i) extents += ",0";
  EXPECT_EQ(refusal(one(extents + "]", "[0,8]")), "the header has a list of more than 64 numbers");
}

TEST(Safetensors, KnowsTheNamesOfOurTypes) {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                            DType::u8, DType::u32})
    EXPECT_EQ(safetensors_dtype(safetensors_name(dtype)), dtype);
  EXPECT_EQ(safetensors_dtype("BOOL"), std::nullopt);
}

}  // namespace
}  // namespace wisp
