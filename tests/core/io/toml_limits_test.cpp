#include "core/io/toml_limits.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

std::string limit_refusal(const std::string& text) {
  return error_of([&] { check_toml_limits(text, "x.toml"); });
}

/// A key like "a.a.a" with this number of parts.
std::string key(int parts, const std::string& part = "a") {
  std::string text = part;
  for (int i = 1; i < parts; ++i) text += "." + part;
  return text;
}

TEST(TomlLimits, KeysHaveSoManyParts) {
  EXPECT_EQ(limit_refusal(key(kMaxKeyParts) + " = 1\n[" + key(kMaxKeyParts) + "]\n"), "no error");
  EXPECT_EQ(limit_refusal("b = 1\n" + key(kMaxKeyParts + 1) + " = 1"),
            "x.toml:2: a key has more than 32 parts");
  EXPECT_NE(limit_refusal("b = [\n{" + key(40) + " = 1}]"), "no error");
  EXPECT_NE(limit_refusal("[[ " + key(40) + " ]]"), "no error");
}

TEST(TomlLimits, DotsElsewhereAreFree) {
  EXPECT_EQ(limit_refusal("a = '" + std::string(99, '.') + "' # " + std::string(99, '.')),
            "no error");
  EXPECT_EQ(limit_refusal("a = \"\\\"" + std::string(99, '.') + "\""), "no error");
  EXPECT_EQ(limit_refusal("a = \"\"\"\n\\\"\"\"" + std::string(99, '.') + "\n\"\"\"\"\""),
            "no error");
  std::string list = "a = [";
  for (int i = 0; i < 99; ++i) list += "0.5, ";
  EXPECT_EQ(limit_refusal(list + "]"), "no error");
}

TEST(TomlLimits, OnlyStringsAndCommentsGoBeyondAscii) {
  EXPECT_EQ(limit_refusal("\xef\xbb\xbf# \u00e9\n\"\u00e9\" = '\u00e9'\n"), "no error");
  EXPECT_EQ(limit_refusal("a = 1\n\u00e9 = 1"),
            "x.toml:2: a character beyond ASCII, which only strings and comments may have");
}

/// A character inside quotes does not end a key.
TEST(TomlLimits, QuotesHideNothing) {
  for (const char* part : {"\"=\"", "'='", "\"\\\"=\"", "\"#\"", "'\"'", "\"'\""})
    EXPECT_NE(limit_refusal(key(40, part) + " = 1"), "no error") << part;
  EXPECT_NE(limit_refusal("b = [{a = '''x''''', " + key(40, "'='") + " = 1}]"), "no error");
}

}  // namespace
}  // namespace wisp
