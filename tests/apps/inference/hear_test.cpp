#include "apps/inference/hear.h"

#include <gtest/gtest.h>

#include <limits>

#include "apps/speech/ngram_training.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_run.h"
#include "tests/support/tone_run.h"

namespace wisp {
namespace {

class Hear : public testing::Test {
 protected:
  /// Trains for so few epochs that the model makes errors.
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    train(tone_config(write_tones(*dir_), {"train.epochs=12", "workers=2"}),
          {*dir_ / "run", RunDirectory::Open::create, true});
    const AskModel ask = [](const Prepared& run, Inference& model) {
      heard_ = hear(model, run, Split::test, [](const std::string& damage) { FAIL() << damage; });
      names_ = model.facts().names;
    };
    test_ = evaluate_run(*dir_ / "run", {}, "last", ask).test;
  }
  static void TearDownTestSuite() { delete dir_; }

  static TempDir* dir_;
  static std::vector<Heard> heard_;
  static Labels names_;
  static Evaluation test_;
};
TempDir* Hear::dir_ = nullptr;
std::vector<Heard> Hear::heard_;
Labels Hear::names_;
Evaluation Hear::test_;

TEST_F(Hear, UtterancesAreInTheirOrderWithWhatIsKnownOfThem) {
  ASSERT_EQ(heard_.size(), 8u);
  EXPECT_EQ(heard_[3].text, "HI HI");
  EXPECT_EQ(heard_[3].speaker, "ben");
  EXPECT_EQ(heard_[4].text, "LOW");
  EXPECT_EQ(heard_[4].speaker, "anna");
  // 5000 + 640 samples: 35 frames of 320 every 160 and a padded one; the model halves their number
  EXPECT_EQ(heard_[4].log_probabilities.size() / names_.size(), 18u);
}

TEST_F(Hear, TheBestPathHasTheErrorsThatAnEvaluationCounts) {
  const ErrorReport errors = count_errors(decode(heard_, names_, {}, 1));
  EXPECT_EQ(errors.total.utterances, 8);
  EXPECT_GT(errors.total.characters.edits(), 0) << "nothing to compare";
  EXPECT_NEAR(errors.total.words.rate(), test_.metrics[0], 1e-12);
  EXPECT_NEAR(errors.total.characters.rate(), test_.metrics[1], 1e-12);
  EXPECT_EQ(errors.speakers.at("ben").words.reference(), 8);
}

TEST_F(Hear, TheSummaryHasTheErrorsOfEachSpeaker) {
  const ErrorReport errors = count_errors(decode(heard_, names_, {}, 1));
  const Summary summary = Summary::from_json(*dir_ / "run/summary.json");
  ASSERT_EQ(summary.test_units.size(), 2u);
  for (const TestUnit& unit : summary.test_units) {
    const EditCounts& words = errors.speakers.at(unit.name).words;
    EXPECT_EQ(unit.sum, static_cast<double>(words.edits())) << unit.name;
    EXPECT_EQ(unit.divisor, static_cast<double>(words.reference())) << unit.name;
  }
  EXPECT_GT(errors.total.words.edits(), 0) << "nothing to compare";
  EXPECT_EQ(errors.total.words.rate(), summary.score("test_wer"));
}

TEST_F(Hear, WordsHelp) {
  const NgramModel words = train_ngrams("LOW\nHI HI\n", 2);
  const std::vector<double> alphas{0.0, 1.0}, betas{-50.0, 0.0};
  std::vector<TriedWeights> tried;
  const TriedWeights best =
      tune_decoding(heard_, names_, {.width = 16, .words = &words}, alphas, betas, 2,
                    [&](const TriedWeights& one) { tried.push_back(one); });
  ASSERT_EQ(tried.size(), 4u);
  EXPECT_EQ(tried[2].alpha, 1.0);
  EXPECT_EQ(tried[2].beta, -50.0);
  for (const TriedWeights& one : tried)
    EXPECT_LE(best.errors.words.edits(), one.errors.words.edits());
  EXPECT_GT(tried[0].errors.words.edits(), best.errors.words.edits()) << "a word costs 50";
  const BeamOptions beam{.width = 16, .words = &words, .alpha = best.alpha, .beta = best.beta};
  EXPECT_EQ(count_errors(decode(heard_, names_, beam, 1)).total.words.edits(),
            best.errors.words.edits());
}

TEST_F(Hear, LeavesOutWhatCannotBeRead) {
  const TempDir dir;
  std::vector<std::string> damages;
  const AskModel ask = [&](const Prepared& run, Inference& model) {
    dir_->write("2.wav", "no sound");
    heard_ = hear(model, run, Split::test,
                  [&](const std::string& damage) { damages.push_back(damage); });
    dir_->write("2.wav", tone(false, 5320));
  };
  evaluate_run(*dir_ / "run", {}, "last", ask);
  ASSERT_EQ(damages.size(), 1u);
  EXPECT_EQ(damages[0].find(*dir_ / "2.wav"), 0u) << damages[0];
  EXPECT_EQ(decode(heard_, names_, {}, 1).size(), 7u);
  EXPECT_TRUE(heard_[2].log_probabilities.empty());
}

TEST_F(Hear, NeedsTheAlphabetThatWasLearned) {
  Inference model(*dir_ / "run");
  Prepared run(tone_config(*dir_ / "list.csv", {"data.alphabet=LOWHI "}));
  run.load();
  EXPECT_EQ(error_of([&] { hear(model, run, Split::test, [](const std::string&) {}); }),
            "class 1 was 'H' when the run was trained, but is 'L' in this data");
}

TEST(HeardLogits, HaveToBeFinite) {
  const Tensor logits({2, 2}, DType::f32);
  logits.data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of([&] { log_probabilities_of(logits); }),
            "the model's output is not finite; has it diverged?");
}

TEST(Tune, NeedsSomethingToTry) {
  const auto refusal = [](const std::vector<double>& alphas) {
    return error_of([&] {
      tune_decoding({}, {"", "A"}, {}, alphas, std::vector{1.0}, 1, [](const TriedWeights&) {});
    });
  };
  EXPECT_EQ(refusal({}), "tune: no weights, expected one or more of each");
  EXPECT_EQ(refusal({1.0}), "tune: no utterance, expected one or more");
}

TEST(HearOthers, RefusesAModelThatHearsNothing) {
  const TempDir dir;
  tiny_train(dir / "run");
  EXPECT_EQ(error_of([&] {
              evaluate_run(dir / "run", {}, "last", [](const Prepared& run, Inference& model) {
                hear(model, run, Split::test, [](const std::string&) {});
              });
            }),
            "hear: the run's model does not hear sound");
}

}  // namespace
}  // namespace wisp
