#include "data/text/vocabulary.h"

#include <gtest/gtest.h>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

using Words = std::vector<std::string>;

TEST(Vocabulary, HasTheWordsByHowOftenTheyOccur) {
  const Vocabulary known = Vocabulary::of("b a b\n  c\tb a \n");
  EXPECT_EQ(known.words(), (Words{"b", "<eos>", "a", "c", "<unk>"})) << "equal ones by their bytes";
  EXPECT_EQ(known.numbers("a d\nb"), (std::vector<int32_t>{2, 4, 1, 0, 1}))
      << "the last line ends, too";
  EXPECT_TRUE(known.numbers("").empty());
  EXPECT_EQ(words_of("a d\nb"), (std::vector<std::string_view>{"a", "d", "<eos>", "b", "<eos>"}));
  EXPECT_TRUE(known.has("a") && !known.has("d"));
}

TEST(Vocabulary, KeepsTheMostFrequentAndTheUnknown) {
  EXPECT_EQ(Vocabulary::of("b a b\n  c\tb a \n", 2).words(), (Words{"b", "<eos>", "<unk>"}));
  EXPECT_EQ(Vocabulary::of("a <unk> <unk>\n", 1).words(), (Words{"<unk>"}));
  EXPECT_EQ(Vocabulary::of("a <unk>\n").words(), (Words{"<eos>", "<unk>", "a"}));
}

TEST(Vocabulary, AWrittenEndOfALineIsItsEnd) {
  const std::string plain = "a b\nb\n\na\n", written = "a b <eos>\nb <eos> \r\n<eos>\na\t<eos>";
  const Vocabulary known = Vocabulary::of(plain);
  EXPECT_EQ(Vocabulary::of(written).words(), known.words());
  EXPECT_EQ(known.numbers(written), known.numbers(plain));
  EXPECT_EQ(words_of(written), words_of(plain));
  EXPECT_EQ(words_of("<eos> a <eos> <eos>\nb<eos>"),
            (std::vector<std::string_view>{"<eos>", "a", "<eos>", "<eos>", "b<eos>", "<eos>"}))
      << "only the last one is the line's end";
  EXPECT_EQ(error_of([] { Vocabulary::of("<eos>\n<eos>"); }), "there is no word");
}

TEST(Vocabulary, WrittenEndsAreCounted) {
  const WrittenEnds ends = written_ends("a <eos>\n<eos> b <eos> c\n\n<eos>\nb<eos>\n");
  EXPECT_EQ(ends.at_line_ends, 2);
  EXPECT_EQ(ends.elsewhere, 2);
}

TEST(Vocabulary, AMarkThatClosesAllLinesIsFound) {
  EXPECT_EQ(closing_mark("a </s>\n\nb c </s> \n"), "</s>");
  EXPECT_EQ(closing_mark("a [EOS]\nb [EOS]"), "[EOS]");
  for (const char* none : {"", "a .\nb .\n", "a </s>\nb\n", "a <1>\nb <2>\n", "a <eos>\n", "<a>"})
    EXPECT_EQ(closing_mark(none), "") << none;
}

TEST(Vocabulary, WordsAreAnyUtf8) {
  const Vocabulary known = Vocabulary::of("naïve naïve 日本 😀\n");
  EXPECT_EQ(known.number("naïve"), 0);
  EXPECT_EQ(known.words()[static_cast<size_t>(known.number("😀"))], "😀");
}

TEST(Vocabulary, RefusesWhatHasNoWords) {
  EXPECT_EQ(error_of([] { Vocabulary::of(""); }), "there is no word");
  EXPECT_EQ(error_of([] { Vocabulary::of(" \n\n"); }), "there is no word");
  EXPECT_EQ(error_of([] {
              Vocabulary(Words{"a", "<unk>", "a"});
            }),
            "a vocabulary has the word 'a' twice");
  EXPECT_EQ(error_of([] { Vocabulary(Words{}); }), "a vocabulary of 0 words has no <unk>");
  EXPECT_EQ(error_of([] { Vocabulary(Words{"a"}); }), "a vocabulary of 1 words has no <unk>");
}

TEST(Vocabulary, RefusesBytesThatAreNoUtf8) {
  EXPECT_EQ(error_of([] { Vocabulary::of("ab\nc \xff d"); }), "byte 5, in line 2, is no UTF-8");
}

}  // namespace
}  // namespace wisp
