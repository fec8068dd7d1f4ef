#include "core/io/toml_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace wisp {
namespace {

TEST(TomlText, NumbersAreShortAndExact) {
  EXPECT_EQ(to_toml(0.1), "0.1");
  EXPECT_EQ(to_toml(1.0), "1.0");  // a point keeps it a number, not an integer
  EXPECT_EQ(to_toml(-0.0), "-0.0");
  EXPECT_EQ(to_toml(1e22), "1e+22");
  EXPECT_EQ(std::stod(to_toml(1.0 / 3.0)), 1.0 / 3.0);
  EXPECT_EQ(to_toml(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(to_toml(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(to_toml(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
}

TEST(TomlText, StringsAreEscaped) {
  EXPECT_EQ(to_toml(std::string("a\"b\\c\n\x7f")), "\"a\\\"b\\\\c\\u000a\\u007f\"");
  EXPECT_EQ(to_toml(std::string("größe")), "\"größe\"");
}

TEST(TomlText, ListsAndKeys) {
  EXPECT_EQ(to_toml(std::vector<double>{1.0, 0.5}), "[1.0, 0.5]");
  EXPECT_EQ(to_toml(std::vector<std::string>{}), "[]");
  EXPECT_EQ(to_toml_key("a-b_1"), "a-b_1");
  EXPECT_EQ(to_toml_key("a.b"), "\"a.b\"");
  EXPECT_TRUE(is_bare_dotted("a.b-c.d_1"));
  EXPECT_FALSE(is_bare_dotted("a..b"));
  EXPECT_FALSE(is_bare_dotted("a b"));
  EXPECT_FALSE(is_bare_dotted(""));
}

}  // namespace
}  // namespace wisp
