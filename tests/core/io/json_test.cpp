#include "core/io/json.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

std::string nested(int depth, const std::string& open, const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += "0";
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

template <class T>
std::string complaint(const char* text) {
  return error_of([&] { json_at<T>(parse_json(text), "a"); });
}

TEST(Json, IsNestedUpToABound) {
  const std::string deep = "it is nested too deeply";
  for (const auto& [open, close] :
       {std::pair{"[", "]"}, std::pair{"{\"a\":", "}"}, std::pair{"[{\"a\":[", "]}]"}}) {
    const int levels = open[1] == '{' ? 3 : 1;
    EXPECT_NO_THROW(parse_json(nested(kMostJsonDepth / levels, open, close)));
    for (const int depth : {kMostJsonDepth + 1, 300'000}) {
      const std::string text = nested(depth, open, close);
      EXPECT_EQ(error_of([&] { parse_json(text); }), deep);
      EXPECT_EQ(error_of([&] { parse_json<nlohmann::ordered_json>(text); }), deep);
    }
  }
  EXPECT_EQ(error_of([] { parse_json(std::string(1'000'000, '[')); }), deep) << "and has no end";
}

TEST(Json, HasNoKeyTwice) {
  EXPECT_EQ(error_of([] { parse_json(R"({"a": 1, "b": 2, "a": 1})"); }), "a is there twice");
  EXPECT_EQ(error_of([] { parse_json(R"([{"a": {"b": 1, "b": 1}}])"); }), "b is there twice");
  EXPECT_EQ(error_of([] { parse_json<nlohmann::ordered_json>(R"({"a": 1, "a": {}})"); }),
            "a is there twice");
  const char* siblings = R"([{"a": {"a": 1}}, {"a": [{"a": 2}, {"a": 3}]}])";
  EXPECT_EQ(parse_json(siblings)[1]["a"][1]["a"], 3) << "objects of their own";
  const auto may = [](int depth, const std::string& key) { return depth > 1 || key == "x"; };
  EXPECT_EQ(parse_json(R"({"x": 1, "x": {"y": 1, "y": 2}})", may)["x"]["y"], 2);
  EXPECT_EQ(error_of([&] { parse_json(R"({"y": 1, "y": 2})", may); }), "y is there twice");
}

TEST(Json, SaysWhereItIsDamaged) {
  for (const char* text : {"", "{", "nan", "[1,]", "1e999", "\"\xff\"", "{} {}"})
    EXPECT_EQ(error_of([&] { parse_json(text); }).find("[json.exception."), 0u) << text;
  const TempDir dir;
  const std::string path = dir.write("a.json", "[1");
  EXPECT_EQ(error_of([&] { read_json(path); }).find(path + ": [json.exception."), 0u);
  EXPECT_EQ(error_of([&] { read_json(dir / "none"); }), dir / "none: there is no such file");
}

TEST(Json, HasTypedValues) {
  EXPECT_EQ(json_at<int>(parse_json(R"({"a": -7})"), "a"), -7);
  EXPECT_EQ(json_at<double>(parse_json(R"({"a": 7})"), "a"), 7.0);
  EXPECT_EQ(json_at<bool>(parse_json(R"({"a": true})"), "a"), true);
  EXPECT_EQ(json_at<std::string>(parse_json(R"({"a": "b"})"), "a"), "b");
  EXPECT_EQ(json_at<std::vector<int64_t>>(parse_json(R"({"a": [1, 2]})"), "a"),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(json_or(parse_json("{}"), "a", int64_t{3}), 3);
  EXPECT_EQ(json_or(parse_json("[]"), "a", int64_t{3}), 3);
}

TEST(Json, NamesTheValueThatIsOfAnotherType) {
  EXPECT_EQ(complaint<int64_t>("{}"), "there is no a");
  EXPECT_EQ(complaint<int64_t>("[]"), "there is no a");
  EXPECT_EQ(complaint<int64_t>(R"({"a": "many"})"), "a is \"many\", expected a whole number");
  EXPECT_EQ(complaint<int64_t>(R"({"a": 1e99})"), "a is 1e+99, expected a whole number");
  EXPECT_EQ(complaint<int64_t>(R"({"a": true})"), "a is true, expected a whole number");
  EXPECT_EQ(complaint<int64_t>(R"({"a": 9223372036854775808})"),
            "a is 9223372036854775808, expected a whole number from -9223372036854775808 to "
            "9223372036854775807");
  EXPECT_EQ(complaint<int>(R"({"a": -3000000000})"),
            "a is -3000000000, expected a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(complaint<double>(R"({"a": null})"), "a is null, expected a number");
  EXPECT_EQ(complaint<bool>(R"({"a": 1})"), "a is 1, expected true or false");
  EXPECT_EQ(complaint<std::string>(R"({"a": ["b"]})"), "a is [\"b\"], expected a text");
  EXPECT_EQ(complaint<std::vector<int64_t>>(R"({"a": {"b": 1}})"),
            "a is {\"b\":1}, expected a list");
  EXPECT_EQ(complaint<std::vector<int64_t>>(R"({"a": [1, "b"]})"),
            "a[1] is \"b\", expected a whole number");
  const std::string longer = "{\"a\": \"" + std::string(1000, 'x') + "\"}";
  EXPECT_LT(complaint<bool>(longer.c_str()).size(), 100u) << "cut";
}

/// Of 100,000 objects, which a parser would never finish whose time rises with their square.
TEST(Json, ReadsLongLists) {
  std::string text = "[";
  for (int i = 0; i < 100'000; ++i) text += R"({"name":"wire","args":{"step":1}},)";
  text.back() = ']';
  EXPECT_EQ(parse_json(text).size(), 100'000u);
  text.insert(1, R"({"a":1,"a":2},)");
  EXPECT_EQ(error_of([&] { parse_json(text); }), "a is there twice");
}

}  // namespace
}  // namespace wisp
