#include "apps/speech/ngram.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

enum Word { kUnk, kBegin, kEnd, kA, kB };  // indices in words(); the n-gram of a word is one more

Vocabulary words() { return Vocabulary({"<unk>", "<s>", "</s>", "a", "b"}); }

/// A model of the unigrams, "<s> a", "a b" and "<s> a b", with weights in log10.
NgramModel trigrams() {
  NgramTrie trie(5);
  std::vector<NgramWeights> weights = {
      {}, {-2.0f, 0.0f}, {-99.0f, -0.5f}, {-0.5f, 0.0f}, {-0.75f, -0.25f}, {-1.0f, -0.125f}};
  const int32_t begin_a = trie.insert(1 + kBegin, kA);
  weights.push_back({-0.375f, -0.0625f});
  trie.insert(1 + kA, kB);
  weights.push_back({-0.625f, -0.03125f});
  trie.insert(begin_a, kB);
  weights.push_back({-0.1875f, 0.0f});
  return NgramModel(words(), std::move(trie), std::move(weights));
}

void expect_log10(double expected, const NgramModel::Step& step) {
  EXPECT_NEAR(step.log_probability, expected * std::log(10.0), 1e-12);
}

TEST(Ngram, BacksOffToShorterOnes) {
  const NgramModel model = trigrams();
  EXPECT_EQ(model.order(), 3);
  EXPECT_EQ(model.counts(), (std::vector<int64_t>{5, 2, 1}));
  const NgramModel::Step a = model.next(model.begin(), kA);
  expect_log10(-0.375, a);
  const NgramModel::Step b = model.next(a.state, kB);
  expect_log10(-0.1875, b);
  EXPECT_EQ(model.ngrams().words(b.state), (std::vector<int32_t>{kA, kB}));
  expect_log10(-0.03125 - 0.125 - 0.5, model.end(b.state));  // back-offs of "a b" and "b"
  const NgramModel::Step again = model.next(a.state, kA);
  expect_log10(-0.0625 - 0.25 - 0.75, again);  // back-offs of "<s> a" and "a"
  expect_log10(-0.625, model.next(again.state, kB));
  expect_log10(-0.25 - 2.0, model.next(again.state, kUnk));
  expect_log10(-0.5 - 1.0, model.next(model.begin(), kB));
}

TEST(Ngram, RefusesPartsThatDoNotFit) {
  const auto made = [](std::vector<std::string> own, size_t weights, float value) {
    NgramTrie trie(std::ssize(own));
    return error_of([&] {
      NgramModel(Vocabulary(own), trie, std::vector<NgramWeights>(weights, {value, 0.0f}));
    });
  };
  EXPECT_EQ(made({"<unk>", "<s>", "</s>"}, 4, -1.0f), "no error");
  EXPECT_EQ(made({"<unk>", "<s>", "</s>"}, 3, -1.0f), "an n-gram model has 3 weights, expected 4");
  EXPECT_EQ(made({"<unk>", "<s>"}, 3, -1.0f), "an n-gram model has no word </s>");
  EXPECT_EQ(made({"<unk>", "<s>", "</s>"}, 4, -INFINITY),
            "n-gram 0 has the weights -inf and 0, expected finite ones");
}

}  // namespace
}  // namespace wisp
