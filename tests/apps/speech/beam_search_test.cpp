#include "apps/speech/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/speech/ngram_training.h"
#include "core/io/utf8.h"
#include "core/random.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

const Labels kLabels = {"", " ", "a", "b"};
constexpr int64_t kUnlimited = 1 << 20;

/// Log probabilities of drawn frames. A higher peak concentrates them on one label.
std::vector<float> drawn_frames(uint64_t seed, int64_t count, int64_t labels, double peak) {
  const Philox random(seed, 0, 0);
  std::vector<float> values;
  for (int64_t t = 0; t < count; ++t) {
    std::vector<double> weights;
    double sum = 0.0;
    for (int64_t label = 0; label < labels; ++label) {
      const uint32_t drawn = random.below(static_cast<uint64_t>(t * labels + label), 1000);
      weights.push_back(std::pow((1.0 + drawn) / 1001.0, peak));
      sum += weights.back();
    }
    for (const double weight : weights)
      values.push_back(static_cast<float>(std::log(weight / sum)));
  }
  return values;
}

/// The probability of every text, summed over all paths.
std::map<std::string, double> all_texts(const Frames& frames, const Labels& labels) {
  std::map<std::string, double> texts;
  std::vector<int32_t> path(static_cast<size_t>(frames.count()), 0);
  for (;;) {
    double log_probability = 0.0;
    std::string text;
    for (int64_t t = 0; t < frames.count(); ++t) {
      const int32_t label = path[static_cast<size_t>(t)];
      log_probability += frames[t][label];
      if (label != kBlank && (t == 0 || path[static_cast<size_t>(t - 1)] != label))
        text += labels[static_cast<size_t>(label)];
    }
    texts[text] += std::exp(log_probability);
    size_t digit = 0;
    while (digit < path.size() && ++path[digit] == frames.labels()) path[digit++] = 0;
    if (digit == path.size()) return texts;
  }
}

double words_score(const std::string& text, const BeamOptions& options) {
  if (!options.words) return 0.0;
  double score = 0.0;
  int32_t state = options.words->begin();
  for (const std::string_view word : split_words(text)) {
    const auto step = options.words->next(state, options.words->words().number(word));
    score += options.alpha * step.log_probability + options.beta;
    state = step.state;
  }
  return score + options.alpha * options.words->end(state).log_probability;
}

void expect_as_exhaustive(const Frames& frames, const Labels& labels, BeamOptions options) {
  std::vector<std::pair<double, std::string>> expected;
  for (const auto& [text, probability] : all_texts(frames, labels))
    expected.emplace_back(std::log(probability) + words_score(text, options), text);
  std::sort(expected.rbegin(), expected.rend());
  options.width = options.best = kUnlimited;
  const std::vector<Transcription> found = beam_search(frames, labels, options);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i].score, expected[i].first, 1e-9);
    EXPECT_EQ(found[i].text, expected[i].second);
    std::string words;
    for (const HeardWord& word : found[i].words) words += word.word + " ";
    std::string split;
    for (const std::string_view word : split_words(found[i].text)) split += std::string(word) + " ";
    EXPECT_EQ(words, split);
  }
}

TEST(BeamSearch, WithoutLimitIsExact) {
  for (const int64_t count : {1, 2, 4, 6})
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const std::vector<float> values = drawn_frames(seed, count, 4, 2.0);
      expect_as_exhaustive(Frames(values, 4), kLabels, {});
    }
  const std::vector<float> two = drawn_frames(9, 6, 2, 1.0);
  expect_as_exhaustive(Frames(two, 2), {"", "a"}, {});
}

TEST(BeamSearch, WithoutLimitIsExactWithWords) {
  const NgramModel model = train_ngrams("a b a\nab a\nb ab\na ab b\n", 3);
  for (const double alpha : {0.5, 2.0})
    for (const double beta : {-1.0, 1.5})
      for (uint64_t seed = 0; seed < 3; ++seed) {
        const std::vector<float> values = drawn_frames(seed, 6, 4, 2.0);
        expect_as_exhaustive(Frames(values, 4), kLabels,
                             {.words = &model, .alpha = alpha, .beta = beta});
      }
  const std::vector<float> two = drawn_frames(9, 6, 3, 1.0);
  expect_as_exhaustive(Frames(two, 3), {"", "a", "b"}, {.words = &model});  // one word, no space
}

/// The sums of a narrow beam lack the paths that it has dropped, so no score is too high.
TEST(BeamSearch, WithALimitScoresNoTextTooHigh) {
  const NgramModel model = train_ngrams("a b a\nab a\nb ab\na ab b\n", 2);
  for (const NgramModel* words : {static_cast<const NgramModel*>(nullptr), &model})
    for (uint64_t seed = 0; seed < 5; ++seed) {
      const std::vector<float> values = drawn_frames(seed, 6, 4, 2.0);
      const Frames frames(values, 4);
      const std::map<std::string, double> exact = all_texts(frames, kLabels);
      const BeamOptions options{.width = 9, .best = 9, .words = words};
      const std::vector<Transcription> found = beam_search(frames, kLabels, options);
      EXPECT_EQ(found.size(), 9u);
      for (const Transcription& text : found)
        EXPECT_LE(text.score,
                  std::log(exact.at(text.text)) + words_score(text.text, options) + 1e-9);
    }
}

/// If one label has more than half of each frame's probability, the best path consists of these
/// labels, and no other path outweighs it.
TEST(BeamSearch, OfWidthOneIsTheBestPathWhereThatIsClear) {
  const std::string said = "-aa-ab  --b-ba";
  std::vector<float> values;
  for (const char label : said)
    for (const char letter : std::string("- ab"))
      values.push_back(std::log(letter == label ? 0.97f : 0.01f));
  const Frames frames(values, 4);
  const Transcription expected = transcription_of(frames, best_path(frames), kLabels);
  const std::vector<Transcription> found = beam_search(frames, kLabels, {.width = 1});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(expected.text, "aab bba");
  EXPECT_EQ(found[0].text, expected.text);
  EXPECT_GT(found[0].score, expected.score) << "a sum over paths";
  ASSERT_EQ(found[0].words.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[0].words[i].first_frame, expected.words[i].first_frame);
    EXPECT_EQ(found[0].words[i].last_frame, expected.words[i].last_frame);
    EXPECT_EQ(found[0].words[i].confidence, expected.words[i].confidence);
  }
}

/// Graves 2006, figure 2: the best path is blank, blank (0.36), but the best text is "a" (0.64).
TEST(BeamSearch, FindsWhatTheBestPathMisses) {
  const std::vector<float> values = {std::log(0.6f), std::log(0.4f), std::log(0.6f),
                                     std::log(0.4f)};
  const Frames frames(values, 2);
  EXPECT_EQ(transcription_of(frames, best_path(frames), {"", "a"}).text, "");
  const std::vector<Transcription> found = beam_search(frames, {"", "a"}, {.width = 2, .best = 2});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].text, "a");
  EXPECT_NEAR(std::exp(found[0].score), 0.64, 1e-6);
  EXPECT_NEAR(std::exp(found[1].score), 0.36, 1e-6);
}

TEST(BeamSearch, LabelsBelowACutBeginNothing) {
  const std::vector<float> values = drawn_frames(1, 6, 4, 1.0);
  const Frames frames(values, 4);
  EXPECT_EQ(beam_search(frames, kLabels, {.width = kUnlimited, .most_labels = 3})[0].score,
            beam_search(frames, kLabels, {.width = kUnlimited})[0].score);
  const auto texts = [&](const BeamOptions& options) {
    return beam_search(frames, kLabels, options).size();
  };
  EXPECT_EQ(texts({.width = kUnlimited, .best = kUnlimited, .least_probability = 1.0}), 1u);
  EXPECT_LT(texts({.width = kUnlimited, .best = kUnlimited, .most_labels = 1}), 100u);
  const std::vector<float> never = {0.0f, -INFINITY, -INFINITY, -INFINITY};
  EXPECT_EQ(beam_search(Frames(never, 4), kLabels, {.best = 9}).size(), 1u)
      << "what is impossible is not returned";
}

TEST(BeamSearch, OfManyUtterancesIsThatOfEach) {
  const NgramModel model = train_ngrams("a b a\nab a\n", 2);
  std::vector<std::vector<float>> values;
  for (uint64_t i = 0; i < 9; ++i) values.push_back(drawn_frames(i, 5 * int64_t(i), 4, 4.0));
  std::vector<Frames> utterances;
  for (const std::vector<float>& own : values) utterances.emplace_back(own, 4);
  const BeamOptions options{.width = 20, .best = 3, .words = &model};
  for (const int threads : {1, 2, 5, 20}) {
    const auto found = beam_search(utterances, kLabels, options, threads);
    ASSERT_EQ(found.size(), utterances.size());
    for (size_t i = 0; i < found.size(); ++i) {
      const std::vector<Transcription> expected = beam_search(utterances[i], kLabels, options);
      ASSERT_EQ(found[i].size(), expected.size());
      for (size_t best = 0; best < expected.size(); ++best) {
        EXPECT_EQ(found[i][best].text, expected[best].text);
        EXPECT_EQ(found[i][best].score, expected[best].score) << "the same bits";
      }
    }
  }
  EXPECT_EQ(beam_search(utterances[0], kLabels, options)[0].text, "") << "no frames";
  EXPECT_TRUE(beam_search(std::span<const Frames>{}, kLabels, options, 2).empty());
}

TEST(BeamSearch, RefusesOptionsThatMakeNoSense) {
  const std::vector<float> values = drawn_frames(1, 2, 4, 1.0);
  const std::vector<Frames> frames = {Frames(values, 4)};
  const auto said = [&](const Labels& labels, const BeamOptions& options, int threads = 2) {
    return error_of([&] { beam_search(frames, labels, options, threads); });
  };
  EXPECT_EQ(said(kLabels, {}), "no error");
  EXPECT_EQ(said({"", "a", "b"}, {}), "frames of 4 labels, expected 3");
  EXPECT_EQ(said({"", "a", "a", "b"}, {}), "label 2, 'a', is there twice, expected once");
  EXPECT_EQ(said(kLabels, {.width = 0}), "a beam of 0 prefixes, expected 1 to 16777216");
  EXPECT_EQ(said(kLabels, {.best = 0}), "0 best transcriptions, expected 1 or more");
  EXPECT_EQ(said(kLabels, {.most_labels = -1}), "at most -1 labels, expected 0 (all) or more");
  EXPECT_EQ(said(kLabels, {.least_probability = NAN}),
            "labels of probability nan, expected 0 to 1");
  EXPECT_EQ(said(kLabels, {.alpha = INFINITY}), "alpha inf and beta 1, expected numbers");
  EXPECT_EQ(said(kLabels, {}, 0), "0 threads, expected 1 or more");
}

}  // namespace
}  // namespace wisp
