#include "apps/inference/score.h"

#include <gtest/gtest.h>

#include "apps/inference/text_reader.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

class Scores : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    tiny_text_train(*dir_ / "run", dir_->write("text", tiny_lines(400)),
                    {"train.batch=1", "train.max_steps=40"});
  }
  static void TearDownTestSuite() { delete dir_; }

  static Score scored(const std::string& text, const Overrides& overrides = {}) {
    Inference model(*dir_ / "run", overrides);
    return score(model, text);
  }

  static TempDir* dir_;
};
TempDir* Scores::dir_ = nullptr;

/// The score reads the test split of the run's text in one column, as the evaluation does.
TEST_F(Scores, AreThoseOfAnEvaluationInOneColumn) {
  const Evaluation expected = evaluate_run(*dir_ / "run", {}).test;
  const Score found = scored(tiny_lines(20));
  EXPECT_EQ(found.words, 10 * 5 + 10 * 4 - 1);
  EXPECT_EQ(found.words, expected.targets);
  EXPECT_NEAR(found.nats_per_word(), expected.loss, 1e-6);  // expected: f32, found: f64
  EXPECT_NEAR(found.perplexity(), expected.metrics[0], 1e-5);
  EXPECT_EQ(found.characters, std::ssize(tiny_lines(20)));
  EXPECT_DOUBLE_EQ(found.bits_per_character(),
                   found.nats / std::log(2.0) / static_cast<double>(found.characters));
  EXPECT_EQ(found.unknown, 0);
  EXPECT_EQ(found.known_perplexity(), found.perplexity());
}

TEST_F(Scores, CountAWrittenEndOfALineOnce) {
  const Score plain = scored("one two\nfive six\n"),
              written = scored("one two <eos>\nfive six <eos>");
  EXPECT_EQ(written.words, plain.words);
  EXPECT_EQ(written.nats, plain.nats);
}

TEST_F(Scores, DoNotDependOnTheWindow) {
  const double expected = scored(tiny_lines(9)).nats;
  for (const char* window : {"1", "5", "1000"})
    EXPECT_NEAR(scored(tiny_lines(9), {concat("data.window=", window)}).nats, expected, 1e-4)
        << window;
}

TEST_F(Scores, CountWordsThatTheRunDoesNotKnow) {
  const Score found = scored("one zwei three <unk>\nnaïve");
  EXPECT_EQ(found.words, 6) << "line ends, too";
  EXPECT_EQ(found.unknown, 2) << "the text's own <unk> is a word of the run's";
  EXPECT_EQ(found.characters, 26) << "é is one";
  Inference model(*dir_ / "run");
  TextReader reader(model);
  const std::vector<int32_t> tokens = reader.vocabulary().numbers("one zwei three <unk>\nnaïve");
  const Tensor logits = reader.read(tokens);
  double known = 0.0;
  for (const int64_t target : {2, 3, 4, 6})  // "three", <unk> and both line ends
    known -= log_softmax(logits, target - 1)[static_cast<size_t>(tokens[size_t(target)])];
  EXPECT_NEAR(found.known_nats, known, 1e-5);
  EXPECT_NEAR(found.known_perplexity(), std::exp(known / 4), 1e-4);
}

TEST_F(Scores, RefuseTextsWithoutTwoWords) {
  for (const char* text : {"", " \n\n"})
    EXPECT_EQ(error_of([&] { scored(text); }), "there is no word");
  EXPECT_EQ(error_of([&] { scored("\n one \n"); }),
            "there is one word, expected two or more: a word is scored from the words before it");
  EXPECT_EQ(error_of([&] { scored("one\ntwo \xc3("); }), "byte 8, in line 2, is no UTF-8");
  EXPECT_EQ(error_of([&] { scored("\n\none two"); }), "no error") << "lines without words";
  EXPECT_NE(error_of([&] {
              scored("one two", {"data.window=0"});
            }).find("data.window is 0, expected 1 or more"),
            std::string::npos);
}

TEST_F(Scores, RefuseARunThatReadsNoText) {
  const TempDir dir;
  tiny_train(dir / "images", {"train.max_steps=1"});
  Inference images(dir / "images");
  EXPECT_NE(error_of([&] { score(images, "one two"); }).find("reads no text"), std::string::npos);
}

}  // namespace
}  // namespace wisp
