#include "data/speech/alphabet.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

TEST(Alphabet, HasTheLabelsOfDeepSpeech) {
  const Alphabet english;
  EXPECT_EQ(english.size(), 29);
  EXPECT_EQ(english.names()[0], "_");
  EXPECT_EQ(english.names()[1], "'");
  EXPECT_EQ(english.names()[2], "A");
  EXPECT_EQ(english.names()[28], " ");
  EXPECT_EQ(english.labels("IT'S A"), (std::vector<int32_t>{10, 21, 1, 20, 28, 2}));
}

TEST(Alphabet, ReadsTheOtherCaseAndAnyWhiteSpace) {
  const Alphabet english;
  EXPECT_EQ(english.labels("  it's\t\n a "), english.labels("IT'S A"));
  EXPECT_EQ(Alphabet("abA").labels("aAB"), (std::vector<int32_t>{1, 3, 2}));
  EXPECT_TRUE(english.labels(" \n").empty());
}

TEST(Alphabet, HasCharactersOfAnyLanguage) {
  const Alphabet german("äöü ß");
  EXPECT_EQ(german.labels("ß ä"), (std::vector<int32_t>{5, 4, 1}));
}

TEST(Alphabet, NamesWhatItHasNot) {
  EXPECT_EQ(error_of([] { Alphabet().labels("Seit 1999: é"); }),
            "\"Seit 1999: é\" has '1', '9', ':', 'é', expected characters of "
            "\"'ABCDEFGHIJKLMNOPQRSTUVWXYZ \"");
  EXPECT_EQ(error_of([] { Alphabet("aba"); }), "an alphabet has 'a' twice");
  EXPECT_EQ(error_of([] { Alphabet(""); }), "an alphabet of no characters");
  EXPECT_EQ(error_of([] { Alphabet().labels("\xff"); }), "byte 0, in line 1, is no UTF-8");
}

}  // namespace
}  // namespace wisp
