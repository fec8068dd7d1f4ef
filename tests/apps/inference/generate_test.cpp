#include "apps/inference/generate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "apps/inference/score.h"
#include "tests/support/error_of.h"
#include "tests/support/tiny_text_run.h"

namespace wisp {
namespace {

using Tokens = std::vector<int32_t>;

class Generate : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    dir_ = new TempDir;
    tiny_text_train(*dir_ / "run", dir_->write("text", tiny_lines(400)));
  }
  static void TearDownTestSuite() { delete dir_; }

  std::vector<DrawnWord> drawn(const std::string& text, const GenerateOptions& options) {
    TextReader reader(model_);
    const Prompt prompt = Prompt::of(text, reader.vocabulary());
    std::vector<DrawnWord> words;
    generate(reader, prompt, options, [&](const DrawnWord& word) { words.push_back(word); });
    return words;
  }
  std::string said(const std::string& text, const GenerateOptions& options) {
    WordsAsText all;
    std::string said;
    for (const DrawnWord& word : drawn(text, options))
      said += all.next(model_.facts().names[static_cast<size_t>(word.token)]);
    return said;
  }
  Vocabulary vocabulary() const { return Vocabulary(model_.facts().names); }

  static TempDir* dir_;
  Inference model_{*dir_ / "run"};
};
TempDir* Generate::dir_ = nullptr;

TEST_F(Generate, TheMostProbableWordsAreThoseThatWereLearned) {
  const GenerateOptions greedy{.tokens = 9, .temperature = 0.0};
  EXPECT_EQ(said("one two", greedy), "three four\nfive six seven\none two");
  EXPECT_EQ(said("three four\n", greedy), "five six seven\none two three four\n");
  const std::string begun = said("", greedy);
  EXPECT_TRUE(begun.starts_with("one two") || begun.starts_with("five six")) << begun;
}

TEST_F(Generate, TheSameSeedGivesTheSameText) {
  const GenerateOptions hot{.tokens = 60, .temperature = 3.0, .seed = 5};
  EXPECT_EQ(said("one", hot), said("one", hot));
  GenerateOptions other = hot;
  other.seed = 6;
  EXPECT_NE(said("one", hot), said("one", other));
}

TEST_F(Generate, OneWordToDrawFromIsTheMostProbableOne) {
  const GenerateOptions greedy{.tokens = 20, .temperature = 0.0},
      cold{.tokens = 20, .temperature = 1e-300}, one{.tokens = 20, .top_k = 1};
  EXPECT_EQ(said("one", cold), said("one", greedy));
  EXPECT_EQ(said("one", one), said("one", greedy));
}

/// Drawn words have the frequencies of the model's probabilities, with <unk> left out.
TEST_F(Generate, DrawsAsTheModelSays) {
  TextReader reader(model_);
  const Tokens tokens = Prompt::of("one two", reader.vocabulary()).tokens;
  const int32_t unknown = reader.vocabulary().number(Vocabulary::kUnknown);
  const std::vector<double> told = log_softmax(reader.read(tokens), 1);
  const double temperature = 4.0;  // so that each word is drawn
  double sum = 0.0;
  std::vector<double> expected;
  for (size_t i = 0; i < told.size(); ++i) {
    expected.push_back(static_cast<int32_t>(i) == unknown ? 0.0 : std::exp(told[i] / temperature));
    sum += expected.back();
  }
  const int draws = 2000;
  std::map<int32_t, int> counts;
  for (int seed = 0; seed < draws; ++seed) {
    const DrawnWord word =
        drawn("one two",
              {.tokens = 1, .temperature = temperature, .seed = static_cast<uint64_t>(seed)})[0];
    // drawn() reads the prompt word by word, reader.read() all at once
    EXPECT_NEAR(word.log_probability, told[static_cast<size_t>(word.token)], 1e-5);
    ++counts[word.token];
  }
  EXPECT_EQ(counts.count(unknown), 0u);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double share = expected[i] / sum;
    // 5 standard deviations of a binomial count
    EXPECT_NEAR(counts[static_cast<int32_t>(i)], draws * share,
                5.0 * std::sqrt(draws * share * (1.0 - share)) + 1e-9)
        << model_.facts().names[i];
  }
}

TEST_F(Generate, TheBestWordsAloneAreDrawn) {
  TextReader reader(model_);
  const std::vector<double> told =
      log_softmax(reader.read(Prompt::of("one", reader.vocabulary()).tokens), 0);
  std::vector<double> order = told;
  order.erase(order.begin() + reader.vocabulary().number(Vocabulary::kUnknown));
  std::sort(order.rbegin(), order.rend());
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const DrawnWord word =
        drawn("one", {.tokens = 1, .temperature = 100.0, .top_k = 3, .seed = seed})[0];
    EXPECT_GE(word.log_probability, order[2]);
  }
}

TEST_F(Generate, APromptIsNumberedByTheRunsVocabulary) {
  const Vocabulary known = vocabulary();
  const int32_t one = known.number("one"), end = known.number("<eos>"),
                unknown = known.number("<unk>");
  EXPECT_EQ(Prompt::of("", known).tokens, Tokens{end});
  EXPECT_EQ(Prompt::of("  ", known).tokens, Tokens{end});
  EXPECT_EQ(Prompt::of("one  one", known).tokens, (Tokens{one, one})) << "the line goes on";
  EXPECT_EQ(Prompt::of("one\n", known).tokens, (Tokens{one, end}));
  EXPECT_EQ(Prompt::of("one\none", known).tokens, (Tokens{one, end, one}));
  EXPECT_EQ(Prompt::of("one <eos>", known).tokens, (Tokens{one, end}));
  EXPECT_EQ(Prompt::of("one <eos>\n", known).tokens, (Tokens{one, end})) << "not twice";
  EXPECT_EQ(Prompt::of("one <eos>\n one", known).tokens, (Tokens{one, end, one}));
  const Prompt some = Prompt::of("one zwei drei zwei <unk>", known);
  EXPECT_EQ(some.tokens, (Tokens{one, unknown, unknown, unknown, unknown}));
  EXPECT_EQ(some.unknown, (std::vector<std::string>{"zwei", "drei"}));
}

TEST_F(Generate, APromptThatNobodyKnowsIsRefused) {
  EXPECT_EQ(error_of([&] { Prompt::of("zwei drei", vocabulary()); }),
            "no word of the prompt (zwei drei) is in the run's vocabulary, which is that of its "
            "training text");
  EXPECT_EQ(error_of([&] { Prompt::of("one \xff", vocabulary()); }),
            "the prompt: byte 4, in line 1, is no UTF-8");
}

TEST_F(Generate, RefusesOptionsOutOfRange) {
  const auto refusal = [&](const GenerateOptions& options) {
    return error_of([&] { drawn("one", options); });
  };
  EXPECT_EQ(refusal({.tokens = 0}), "generate: 0 tokens, expected 1 or more");
  EXPECT_EQ(refusal({.temperature = -0.5}), "generate: a temperature of -0.5, expected 0 or more");
  EXPECT_EQ(refusal({.temperature = std::nan("")}),
            "generate: a temperature of nan, expected 0 or more");
  EXPECT_EQ(refusal({.top_k = -1}), "generate: top-k is -1, expected 0 (all words) or more");
}

TEST_F(Generate, ARunThatReadsNoTextIsRefused) {
  const TempDir dir;
  tiny_train(dir / "images", {"train.max_steps=1"});
  Inference images(dir / "images");
  EXPECT_EQ(error_of([&] { TextReader{images}; }),
            "the run's model reads no text: its input input is (32, 32, 3) f32, expected tokens, "
            "(0) i32");
}

TEST_F(Generate, ARunWithoutWordsIsRefused) {
  const TempDir dir;
  std::filesystem::copy(*dir_ / "run", dir / "run", std::filesystem::copy_options::recursive);
  const std::string facts = read_text(dir / "run/facts.json");
  const auto refusal = [&](const std::string& from, const std::string& to) {
    std::string text = facts;
    text.replace(text.find(from), from.size(), to);
    dir.write("run/facts.json", text);
    Inference model(dir / "run");
    return error_of([&] { TextReader{model}; });
  };
  EXPECT_EQ(
      refusal("\"<unk>\"", "\"unk\""),
      "the names in the run's facts.json are not a vocabulary: a vocabulary of 9 words has no "
      "<unk>");
  const size_t begin = facts.find("\"names\""), end = facts.find(']', begin);
  EXPECT_EQ(refusal(facts.substr(begin, end - begin), "\"names\": ["),
            "the run has no vocabulary: its facts.json names no words (names)");
}

/// A model may have more classes than its text has words.
TEST_F(Generate, ClassesWithoutAWordAreNeverDrawn) {
  const TempDir dir;
  tiny_text_train(dir / "run", *dir_ / "text", {"model.classes=1000", "train.max_steps=1"});
  Inference model(dir / "run");
  TextReader reader(model);
  EXPECT_EQ(reader.vocabulary().size(), 9);
  generate(reader, Prompt::of("one", reader.vocabulary()), {.tokens = 50, .temperature = 100.0},
           [&](const DrawnWord& drawn) {
             EXPECT_LT(drawn.token, 9);
             EXPECT_LT(drawn.log_probability, std::log(0.1)) << "the others have their share";
           });
  EXPECT_GT(score(model, "one two three").perplexity(), 100.0);
}

TEST_F(Generate, AModelThatHasDivergedSaysSo) {
  const TempDir dir;
  tiny_text_train(dir / "run", *dir_ / "text",
                  {"optimizer.lr=1e300", "clip.norm=0.0", "train.max_steps=3"});
  Inference model(dir / "run");
  TextReader reader(model);
  EXPECT_EQ(error_of([&] {
              generate(reader, Prompt::of("one", reader.vocabulary()), {}, [](const DrawnWord&) {});
            }),
            "the model's output is not finite; has it diverged?");
}

}  // namespace
}  // namespace wisp
