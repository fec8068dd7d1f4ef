#include "core/io/utf8.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

TEST(Utf8, RefusesOtherBytes) {
  for (const char* bad : {"\x80", "\xc0\x80", "\xc3", "\xe2\x82", "\xed\xa0\x80",
                          "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80"})
    EXPECT_TRUE(error_of([&] { check_utf8(bad); }) != "no error" && !is_utf8(bad)) << bad;
  for (const char* good : {"", "a", "\xc2\x80", "\xed\x9f\xbf", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(error_of([&] { check_utf8(good); }) == "no error" && is_utf8(good)) << good;
  EXPECT_EQ(error_of([] { check_utf8("ab\nc \xff d"); }), "byte 5, in line 2, is no UTF-8");
}

TEST(Utf8, BeginsWithWholeCharacters) {
  EXPECT_EQ(beginning_of("aé€😀b", 11), "aé€😀b");
  EXPECT_EQ(beginning_of("aé€😀b", 10), "aé€😀");
  EXPECT_EQ(beginning_of("aé€😀b", 9), "aé€");
  EXPECT_EQ(beginning_of("aé€😀b", 6), "aé€");
  EXPECT_EQ(beginning_of("aé€😀b", 5), "aé");
  EXPECT_EQ(beginning_of("aé€😀b", 2), "a");
  EXPECT_EQ(beginning_of("é", 1), "");
  EXPECT_EQ(beginning_of("", 0), "");
}

TEST(Utf8, CutsCharacters) {
  EXPECT_EQ(characters_of("aé€😀b"), (std::vector<std::string_view>{"a", "é", "€", "😀", "b"}));
  EXPECT_TRUE(characters_of("").empty());
}

}  // namespace
}  // namespace wisp
