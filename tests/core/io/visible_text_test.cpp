#include "core/io/visible_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/io/config.h"
#include "core/io/toml_text.h"

namespace wisp {
namespace {

TEST(VisibleText, KeepsWhatAPersonSees) {
  for (const char* text : {"", "a", "golden retriever", "a\"b\\c'd", "Größe", "\u05d0\u05d1",
                           "\U0001f9d1\u200d\U0001f33e", "\u00a0\u00ad", "[2J"}) {
    EXPECT_EQ(visible(text), text);
    EXPECT_EQ(visible_lines(text), text);
  }
  EXPECT_EQ(visible_lines("a\tb\nc"), "a\tb\nc");
}

TEST(VisibleText, EscapesWhatATerminalObeys) {
  EXPECT_EQ(visible("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(visible("a\rb\nc\td\ae\bf\x7fg"), "a\\rb\\nc\\td\\x07e\\x08f\\u007fg");
  EXPECT_EQ(visible(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(visible("\u0080\u009b31m\u009f"), "\\u0080\\u009b31m\\u009f") << "C1, as UTF-8";
  EXPECT_EQ(visible("\x9b\x31m"), "\\x9b1m") << "C1, as a byte";
  EXPECT_EQ(visible("\u202egpj.exe\u2066\u2069"), "\\u202egpj.exe\\u2066\\u2069");
  EXPECT_EQ(visible("a\u2028b\u2029"), "a\\u2028b\\u2029");
  EXPECT_EQ(visible("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(visible("\xc0\x9b"), "\\xc0\\x9b") << "ESC in a longer form than allowed";
  EXPECT_EQ(visible_lines("a\r\n\x1b[1A"), "a\\r\n\\x1b[1A");
}

TEST(VisibleText, OfEachByteAloneIsPrintable) {
  for (int byte = 0; byte < 256; ++byte) {
    for (const char c : visible(std::string(1, static_cast<char>(byte)))) {
      EXPECT_GE(c, ' ') << byte;
      EXPECT_NE(c, 0x7f) << byte;
    }
  }
}

TEST(VisibleText, QuotesANameOnlyIfNeeded) {
  EXPECT_EQ(visible_name("cat"), "cat");
  EXPECT_EQ(visible_name("Größe"), "Größe");
  EXPECT_EQ(visible_name("a\\b"), "a\\b");
  EXPECT_EQ(visible_name(""), "\"\"");
  EXPECT_EQ(visible_name("a dog"), "\"a dog\"");
  EXPECT_EQ(visible_name("\x1b[2Jx\ny"), "\"\\x1b[2Jx\\ny\"");
  EXPECT_EQ(visible_name("\"a\\\n"), "\"\\\"a\\\\\\n\"") << "tells a name from a quoted one";
}

/// JSON and TOML allow some of these characters in strings as they are.
TEST(VisibleText, LeavesJsonAndTomlWhatTheyWere) {
  const std::string name = "a\x1b\x7f\u009b\u202e\u2028\t\n\"z";
  const std::string json = nlohmann::json(name).dump();
  EXPECT_NE(visible_lines(json), json);
  EXPECT_EQ(nlohmann::json::parse(visible_lines(json)), name);
  Config config = Config::from_text("name = " + visible_lines(to_toml(name)), "test");
  std::string read;
  config.bind("name", read, "");
  EXPECT_EQ(read, name);
}

}  // namespace
}  // namespace wisp
