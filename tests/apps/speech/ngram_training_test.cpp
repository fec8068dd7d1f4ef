#include "apps/speech/ngram_training.h"

#include <gtest/gtest.h>

#include "apps/speech/arpa.h"
#include "core/random.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_dir.h"

namespace wisp {
namespace {

double probability(const NgramModel& model, int32_t state, const char* word) {
  return std::exp(model.next(state, model.words().number(word)).log_probability);
}

/// "a b" and "a c" have the bigrams <s> a (2), a b, a c, b </s>, c </s>: n1 = 4, n2 = 1, D2 = 2/3.
/// Predecessors are <s> of a, a of b, a of c, b and c of </s>. The unigram counts are therefore 1,
/// 1, 1 and 2, together 5: n1 = 3, n2 = 1, D1 = 3/5. V = 5: a, b, c, </s>, <unk>.
///   unigrams leave D1 · 4 types / 5 = 12/25, of which each word gets a fifth, 12/125
///   p(b) = (1 - 3/5) / 5 + 12/125 = 10/125 + 12/125 = 22/125, equal to p(a) and p(c)
///   p(</s>) = (2 - 3/5) / 5 + 12/125 = 35/125 + 12/125 = 47/125; p(<unk>) = 12/125
///   after a, D2 · 2 / 2 = 2/3 is left: p(b | a) = (1 - 2/3) / 2 + 2/3 · 22/125 = 1/6 + 44/375
///   after <s>, D2 / 2 = 1/3 is left: p(a | <s>) = (2 - 2/3) / 2 + 1/3 · 22/125 = 2/3 + 22/375
TEST(NgramTraining, IsInterpolatedKneserNeyByHand) {
  const NgramModel model = train_ngrams("a b\n\n a c \n", 2);
  EXPECT_EQ(model.counts(), (std::vector<int64_t>{6, 5}));
  const int32_t none = NgramTrie::kEmpty;
  constexpr double kTolerance = 1e-6;  // weights are f32
  EXPECT_NEAR(probability(model, none, "b"), 22.0 / 125, kTolerance);
  EXPECT_NEAR(probability(model, none, "</s>"), 47.0 / 125, kTolerance);
  EXPECT_NEAR(probability(model, none, "d"), 12.0 / 125, kTolerance);
  const int32_t begin = model.begin(), a = model.next(begin, model.words().number("a")).state;
  EXPECT_NEAR(probability(model, begin, "a"), 2.0 / 3 + 22.0 / 375, kTolerance);
  EXPECT_NEAR(probability(model, begin, "b"), 1.0 / 3 * 22 / 125, kTolerance);
  EXPECT_NEAR(probability(model, a, "b"), 1.0 / 6 + 44.0 / 375, kTolerance);
  EXPECT_NEAR(probability(model, a, "d"), 2.0 / 3 * 12 / 125, kTolerance);

  const NgramScore score = score_ngrams(model, "a d\n");
  EXPECT_EQ(score.sentences, 1);
  EXPECT_EQ(score.words, 3);
  EXPECT_EQ(score.unknown, 1);
  const double known = std::log(2.0 / 3 + 22.0 / 375) + std::log(47.0 / 125);
  EXPECT_NEAR(score.known_nats, -known, 1e-5);
  EXPECT_NEAR(score.nats, -known - std::log(2.0 / 3 * 12 / 125), 1e-5);
  EXPECT_NEAR(score.known_perplexity(), std::exp(-known / 2), 1e-5);
}

TEST(NgramTraining, AWrittenEndOfALineIsItsEnd) {
  const NgramModel plain = train_ngrams("a b\na c\n", 2),
                   written = train_ngrams("a b <eos>\n<eos>\na c <eos> \r\n", 2);
  EXPECT_EQ(written.counts(), plain.counts());
  EXPECT_FALSE(written.words().has("<eos>"));
  EXPECT_EQ(score_ngrams(plain, "a d <eos>\n").nats, score_ngrams(plain, "a d\n").nats);
}

/// Lines of up to six of nine words; low numbers are the most frequent.
std::string drawn_text(int64_t lines) {
  const Philox random(5, 0, 0);
  std::string text;
  uint64_t drawn = 0;
  for (int64_t line = 0; line < lines; ++line) {
    for (uint32_t word = random.below(drawn++, 7); word > 0; --word) {
      const uint32_t bound = 1 + random.below(drawn++, 9);
      text += concat("w", random.below(drawn++, bound), " ");
    }
    text += "\n";
  }
  return text;
}

TEST(NgramTraining, ProbabilitiesSumUpToOneBehindEveryState) {
  for (const char* text : {"a\n", "a b a b\na b a b\n", "<unk> a\n"})
    for (const int32_t order : {1, 2, 3, 4}) {
      const NgramModel model = train_ngrams(std::string(text) + drawn_text(order * 10), order);
      EXPECT_EQ(model.order(), order);
      int64_t states = 0;
      for (int32_t state = 0; state < model.ngrams().size(); ++state) {
        if (model.ngrams().length(state) == order && order > 1) continue;
        double sum = 0.0;
        for (const std::string& word : model.words().words())
          if (word != NgramModel::kBegin) sum += probability(model, state, word.c_str());
        EXPECT_NEAR(sum, 1.0, 1e-5) << order << " " << state;  // weights are f32
        ++states;
      }
      EXPECT_GT(states, 10);
    }
}

/// No n-gram of this text occurs once, so the formula for the discount has no value.
TEST(NgramTraining, LeavesSomethingForTheUnseenInAnyCase) {
  const NgramModel model = train_ngrams("a a\na a\n", 2);
  EXPECT_GT(probability(model, model.begin(), "b"), 0.0);
  EXPECT_GT(probability(model, model.begin(), "</s>"), 0.0);
}

TEST(NgramTraining, SurvivesAFileAndTellsItsOwnTextBetter) {
  const TempDir dir;
  const std::string text = drawn_text(300);
  const NgramModel model = train_ngrams(text, 3);
  write_arpa(model, dir / "t.arpa");
  const NgramModel again = read_arpa(dir / "t.arpa");
  EXPECT_EQ(score_ngrams(again, text).nats, score_ngrams(model, text).nats);
  double before = std::numeric_limits<double>::infinity();
  for (const int32_t order : {1, 2, 3}) {
    const double perplexity = score_ngrams(train_ngrams(text, order), text).perplexity();
    EXPECT_LT(perplexity, before);
    before = perplexity;
  }
}

TEST(NgramTraining, AnyTextThatIsLearnedCanBeReadAgain) {
  const TempDir dir;
  std::string longest(4096, 'x');
  for (const std::string& text : {std::string("HELLO <UNK> <unk> WORLD\n"), longest}) {
    const NgramModel model = train_ngrams(text, 10);
    write_arpa(model, dir / "t.arpa");
    EXPECT_EQ(read_arpa(dir / "t.arpa").counts(), model.counts());
  }
  EXPECT_EQ(train_ngrams("a <UNK>\n", 1).words().words(),
            train_ngrams("a <unk>\n", 1).words().words());
  EXPECT_EQ(score_ngrams(train_ngrams("a <unk>\n", 1), "<UNK>").unknown, 1);
}

TEST(NgramTraining, RefusesTextsWithoutWordsAndWithBorders) {
  EXPECT_EQ(error_of([] { train_ngrams(" \n\n", 2); }), "there is no word");
  EXPECT_EQ(error_of([] { train_ngrams("a\nb <s>\n", 2); }),
            "line 2 has the word <s>, which marks the beginning or end of a line; expected a text "
            "without it");
  EXPECT_EQ(error_of([] { train_ngrams("a\nb \xff\n", 2); }), "byte 4, in line 2, is no UTF-8");
  EXPECT_EQ(error_of([] { train_ngrams(std::string("a\nb \0c\n", 7), 2); }),
            "line 2 has a byte of zero, expected text");
  EXPECT_EQ(error_of([] { train_ngrams(std::string(4097, 'a'), 2); }),
            "line 1 has a word of 4097 bytes, expected 4096 at most");
  EXPECT_EQ(error_of([] { train_ngrams("a", 0); }), "n-grams of 0 words, expected 1 or more");
  EXPECT_EQ(error_of([] { score_ngrams(train_ngrams("a", 1), ""); }), "there is no word");
}

}  // namespace
}  // namespace wisp
