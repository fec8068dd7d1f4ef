#include "apps/speech/spelling.h"

#include <gtest/gtest.h>

#include "apps/speech/ngram_training.h"

namespace wisp {
namespace {

const Labels kGerman = {"<blank>", "E", "N", "O", "Ö", " "};

std::string notice(const std::string& text) {
  return spelling_notice(train_ngrams(text, 2), kGerman);
}

TEST(Spelling, FitsIfHalfOfTheWordsCanBeWritten) {
  EXPECT_EQ(notice("ONE NO NÖ"), "");
  EXPECT_EQ(notice("ONE NO yes ja"), "");
  EXPECT_EQ(notice("<unk>"), "") << "no words";
}

TEST(Spelling, NamesAWordThatCannotBeWritten) {
  EXPECT_EQ(notice("one no"),
            "0 of its 2 words can be written in \"ENOÖ \"; a word that cannot, such as 'one', is "
            "never recognised");
  EXPECT_EQ(notice("NO ONEs NÄ xN"),
            "1 of its 4 words can be written in \"ENOÖ \"; a word that cannot, such as 'ONEs', is "
            "never recognised");
}

}  // namespace
}  // namespace wisp
