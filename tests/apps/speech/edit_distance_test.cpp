#include "apps/speech/edit_distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/io/utf8.h"
#include "core/random.h"

namespace wisp {
namespace {

std::string letters_of(const std::vector<Edit>& edits) {
  std::string letters;
  for (const Edit edit : edits) letters += "csdi"[static_cast<size_t>(edit)];
  return letters;
}

std::string aligned(const std::string& reference, const std::string& hypothesis) {
  return letters_of(align(split_words(reference), split_words(hypothesis)));
}

TEST(EditDistance, AlignsWithTheFewestEdits) {
  EXPECT_EQ(aligned("", ""), "");
  EXPECT_EQ(aligned("a b", ""), "dd");
  EXPECT_EQ(aligned("", "a b"), "ii");
  EXPECT_EQ(aligned("a b c", "a b c"), "ccc");
  EXPECT_EQ(aligned("a b c d", "a x c d e"), "cscci");
  EXPECT_EQ(aligned("k i t t e n", "s i t t i n g"), "scccsci");
}

/// Two edits turn "a b" into "b a" in three ways, and either a of "a a" may be deleted.
TEST(EditDistance, PrefersCorrectOrSubstitutedThenDeletedFromTheEnd) {
  EXPECT_EQ(aligned("a b", "b a"), "ss");
  EXPECT_EQ(aligned("a a", "a"), "dc");
  EXPECT_EQ(aligned("a", "a a"), "ic");
  EXPECT_EQ(aligned("a b", "c"), "ds");
}

TEST(EditDistance, IsThatOfTheDefinition) {
  const std::vector<std::string_view> letters = {"a", "b", "c"};
  const std::function<int64_t(std::span<const std::string_view>, std::span<const std::string_view>)>
      distance = [&](auto a, auto b) -> int64_t {
    if (a.empty() || b.empty()) return std::ssize(a) + std::ssize(b);
    const int64_t replaced = distance(a.subspan(1), b.subspan(1)) + (a[0] == b[0] ? 0 : 1);
    return std::min({replaced, distance(a.subspan(1), b) + 1, distance(a, b.subspan(1)) + 1});
  };
  const Philox random(7, 0, 0);
  uint64_t drawn = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<std::string_view> texts[2];
    for (std::vector<std::string_view>& text : texts)
      for (uint32_t n = random.below(drawn++, 6); n > 0; --n)
        text.push_back(letters[random.below(drawn++, 3)]);
    const EditCounts counts = count_edits(align(texts[0], texts[1]));
    EXPECT_EQ(counts.edits(), distance(texts[0], texts[1]));
    EXPECT_EQ(counts.reference(), std::ssize(texts[0]));
    EXPECT_EQ(counts.correct + counts.substitutions + counts.insertions, std::ssize(texts[1]));
  }
}

TEST(EditDistance, SumsUpBeforeItDivides) {
  const std::vector<HeardUtterance> utterances = {
      {"ann", "the cat sat", "the bat sat down"}, {"bob", " yes ", "yes"}, {"ann", "no", ""}};
  const ErrorReport report = count_errors(utterances);
  EXPECT_DOUBLE_EQ(report.total.words.rate(), 3.0 / 5.0);
  EXPECT_EQ(report.total.utterances, 3);
  EXPECT_EQ(report.total.wrong_utterances, 2);
  ASSERT_EQ(report.speakers.size(), 2u);
  EXPECT_DOUBLE_EQ(report.speakers.at("ann").words.rate(), 3.0 / 4.0);
  EXPECT_EQ(report.speakers.at("bob").words.edits(), 0);
  // "the cat sat" has 11 characters: one replaced, 5 of " down" inserted; "no" is deleted.
  EXPECT_DOUBLE_EQ(report.speakers.at("ann").characters.rate(), 8.0 / 13.0);
}

TEST(EditDistance, CountsCharactersNotBytesAndOneSpaceBetweenWords) {
  const ErrorCounts counts = count_errors("naïve  art", "naive art ");
  EXPECT_EQ(counts.characters.reference(), 9);
  EXPECT_EQ(counts.characters.substitutions, 1);
  EXPECT_EQ(counts.characters.edits(), 1);
  EXPECT_TRUE(std::isnan(count_errors("", "").words.rate()));
  EXPECT_TRUE(std::isinf(count_errors("", "a").words.rate()));
}

TEST(EditDistance, ShowsAnAlignmentInColumns) {
  EXPECT_EQ(alignment_text("the cat sat", "the bat down sat"),
            "REF: the *** cat  sat\n"
            "HYP: the bat down sat\n"
            "ERR:     I   S\n");
  EXPECT_EQ(alignment_text("a naïve man", "a man"),
            "REF: a naïve man\n"
            "HYP: a ***** man\n"
            "ERR:   D\n");
  EXPECT_EQ(alignment_text("", ""), "REF:\nHYP:\nERR:\n");
}

}  // namespace
}  // namespace wisp
