#include "apps/speech/transcription.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/random.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

const Labels kLetters = {"", " ", "a", "b"};

/// One frame for each letter of `path`, whose label has `probability`. The letter "-" is the blank.
std::vector<float> frames_of(const std::string& path, double probability) {
  const std::string letters = "- ab";
  std::vector<float> values;
  for (const char said : path)
    for (const char letter : letters)
      values.push_back(
          static_cast<float>(std::log(letter == said ? probability : (1.0 - probability) / 3.0)));
  return values;
}

TEST(Transcription, OfTheBestPathHasWordsAndTheirFrames) {
  const std::vector<float> values = frames_of("-aa-ab  -b-", 0.7);
  const Frames frames(values, 4);
  const Transcription found = transcription_of(frames, best_path(frames), kLetters);
  EXPECT_EQ(found.text, "aab b");
  EXPECT_NEAR(found.score, 11 * std::log(0.7), 1e-5);  // f32 values
  ASSERT_EQ(found.words.size(), 2u);
  EXPECT_EQ(found.words[0].word, "aab");
  EXPECT_EQ(found.words[0].first_frame, 1);
  EXPECT_EQ(found.words[0].last_frame, 5);
  EXPECT_NEAR(found.words[0].confidence, 0.7, 1e-6);
  EXPECT_EQ(found.words[1].word, "b");
  EXPECT_EQ(found.words[1].first_frame, 9);
  EXPECT_EQ(found.words[1].last_frame, 9);
}

/// The best frame of each letter counts: 0.9 for a and 0.4 for b give sqrt(0.9 · 0.4).
TEST(Transcription, ConfidenceIsTheMeanOfBestFrames) {
  std::vector<float> values = frames_of("a", 0.6);
  for (const auto& [path, probability] : {std::pair("a", 0.9), std::pair("b", 0.4)})
    for (const float value : frames_of(path, probability)) values.push_back(value);
  const Frames frames(values, 4);
  const Transcription found = transcription_of(frames, best_path(frames), kLetters);
  ASSERT_EQ(found.words.size(), 1u);
  EXPECT_NEAR(found.words[0].confidence, std::sqrt(0.9 * 0.4), 1e-6);
}

TEST(Transcription, OfNothingIsEmpty) {
  const Frames none({}, 4);
  EXPECT_EQ(none.count(), 0);
  EXPECT_TRUE(best_path_of(none, {}).empty());
  EXPECT_EQ(transcription_of(none, {}, kLetters).text, "");
  const std::vector<float> values = frames_of("- - ", 0.9);
  const Frames frames(values, 4);
  const Transcription spaces = transcription_of(frames, best_path(frames), kLetters);
  EXPECT_EQ(spaces.text, "  ");
  EXPECT_TRUE(spaces.words.empty());
}

std::vector<int32_t> collapsed(std::span<const int32_t> path) {
  std::vector<int32_t> text;
  int32_t before = kBlank;
  for (const int32_t label : path) {
    if (label != kBlank && label != before) text.push_back(label);
    before = label;
  }
  return text;
}

/// Compares with all 4^5 paths, for every text of up to three labels.
TEST(Transcription, BestPathOfATextIsTheBestOfAll) {
  const Philox random(3, 0, 0);
  std::vector<float> values;
  for (uint64_t i = 0; i < 5 * 4; ++i)
    values.push_back(std::log(static_cast<float>(1 + random.below(i, 1000)) / 1001.0f));
  const Frames frames(values, 4);
  std::map<std::vector<int32_t>, double> best;
  for (int32_t number = 0; number < 1024; ++number) {
    std::vector<int32_t> path;
    double score = 0.0;
    for (int64_t t = 0; t < 5; ++t) {
      path.push_back(number >> (2 * t) & 3);
      score += frames[t][path.back()];
    }
    double& known = best.emplace(collapsed(path), score).first->second;
    known = std::max(known, score);
  }
  for (const auto& [text, score] : best) {
    const std::vector<int32_t> path = best_path_of(frames, text);
    EXPECT_EQ(collapsed(path), text);
    EXPECT_NEAR(transcription_of(frames, path, kLetters).score, score, 1e-12);
  }
}

/// Finds one path among very many, for a text with a third as many characters as frames.
TEST(Transcription, BestPathOfALongTextIsTheBest) {
  for (const int64_t count : {1, 28, 29, 57, 400}) {
    const Philox random(4, static_cast<uint64_t>(count), 0);
    std::vector<float> values;
    for (uint64_t i = 0; i < static_cast<uint64_t>(4 * count); ++i)
      values.push_back(std::log(static_cast<float>(1 + random.below(i, 1000)) / 1001.0f));
    const Frames frames(values, 4);
    std::vector<int32_t> text;
    for (int64_t i = 0; i < count / 3; ++i)
      text.push_back(1 +
                     static_cast<int32_t>(random.below(1'000'000 + static_cast<uint64_t>(i), 3)));
    // Viterbi's recursion from the end, for the text from `at` on: `in` or `before` its character
    const auto characters = text.size();
    std::vector<double> before(characters + 1, -INFINITY), in(characters + 1, -INFINITY);
    before[characters] = 0.0;
    if (characters > 0) in[characters - 1] = 0.0;
    for (int64_t t = count; t-- > 0;) {
      std::vector<double> next_before(characters + 1), next_in(characters + 1, -INFINITY);
      for (size_t at = 0; at <= characters; ++at) {
        const double enter = at < characters ? frames[t][text[at]] + in[at] : -INFINITY;
        next_before[at] = std::max(frames[t][kBlank] + before[at], enter);
        if (at == characters) continue;
        const bool repeats = at + 1 < characters && text[at + 1] == text[at];
        const double onward =
            at + 1 < characters && !repeats ? frames[t][text[at + 1]] + in[at + 1] : -INFINITY;
        next_in[at] =
            std::max({frames[t][text[at]] + in[at], frames[t][kBlank] + before[at + 1], onward});
      }
      before = next_before;
      in = next_in;
    }
    const std::vector<int32_t> path = best_path_of(frames, text);
    EXPECT_EQ(collapsed(path), text);
    EXPECT_NEAR(transcription_of(frames, path, kLetters).score, before[0], 1e-9) << count;
  }
}

TEST(Transcription, RefusesWhatIsNoUtterance) {
  std::vector<float> values = frames_of("ab", 0.5);
  const auto made = [&](int64_t labels) { return error_of([&] { Frames(values, labels); }); };
  EXPECT_EQ(made(3), "8 log probabilities, expected 3 for each frame");
  EXPECT_EQ(made(1), "frames of 1 labels, expected 2 or more");
  const Frames frames(values, 4);
  const std::vector<int32_t> twice = {2, 2};
  EXPECT_EQ(error_of([&] { best_path_of(frames, twice); }), "2 frames have no path of 2 labels")
      << "a blank belongs between them";
  EXPECT_EQ(error_of([&] { transcription_of(frames, twice, {"", "a"}); }), "2 labels, expected 4");
  values[5] = NAN;
  EXPECT_EQ(made(4), "frame 1: label 1 has the log probability nan, expected a number");
  for (size_t label = 4; label < 8; ++label) values[label] = -INFINITY;
  EXPECT_EQ(made(4), "frame 1: all labels have the log probability -inf");
  EXPECT_EQ(error_of([] { check_labels({""}); }), "1 labels, expected the blank and one or more");
  EXPECT_EQ(error_of([] {
              check_labels({"", "a", ""});
            }),
            "label 2 is empty, expected a character");
  EXPECT_EQ(error_of([] {
              check_labels({"", "a", "a"});
            }),
            "label 2, 'a', is there twice, expected once");
}

}  // namespace
}  // namespace wisp
