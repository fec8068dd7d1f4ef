#include "apps/speech/ngram_trie.h"

#include <gtest/gtest.h>

#include <map>

#include "core/random.h"

namespace wisp {
namespace {

TEST(NgramTrie, NumbersWordsAndWhatIsInserted) {
  NgramTrie trie(3);
  EXPECT_EQ(trie.size(), 4);
  EXPECT_EQ(trie.find(NgramTrie::kEmpty, 2), 3);
  EXPECT_EQ(trie.find(3, 0), NgramTrie::kNone);
  const int32_t two = trie.insert(3, 0);
  EXPECT_EQ(two, 4);
  EXPECT_EQ(trie.insert(3, 0), two) << "it is there";
  EXPECT_EQ(trie.find(3, 0), two);
  EXPECT_EQ(trie.words(two), (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(trie.length(two), 2);
  EXPECT_EQ(trie.context(two), 3);
  EXPECT_EQ(trie.suffix(two), 1);
  EXPECT_TRUE(trie.words(NgramTrie::kEmpty).empty());
}

/// If the trie lacks "0 1", the longest suffix of "2 0 1" is "1".
TEST(NgramTrie, SuffixIsTheLongestThatIsThere) {
  NgramTrie trie(3);
  const int32_t two = trie.insert(3, 0);
  EXPECT_EQ(trie.suffix(trie.insert(two, 1)), 2);
  const int32_t other = trie.insert(trie.find(NgramTrie::kEmpty, 0), 2);
  EXPECT_EQ(trie.suffix(trie.insert(two, 2)), other);
}

TEST(NgramTrie, FindsWhatAMapFinds) {
  NgramTrie trie(50);
  std::map<std::vector<int32_t>, int32_t> known;
  const Philox random(1, 0, 0);
  for (uint64_t i = 0; i < 20'000; ++i) {
    const auto context = static_cast<int32_t>(random.below(2 * i, 200));
    if (context == 0 || context >= trie.size()) continue;
    const auto word = static_cast<int32_t>(random.below(2 * i + 1, 50));
    std::vector<int32_t> words = trie.words(context);
    words.push_back(word);
    const int32_t number = trie.insert(context, word);
    EXPECT_EQ(number, known.emplace(words, number).first->second);
    EXPECT_EQ(trie.find(context, word), number);
  }
  EXPECT_EQ(trie.size(), 51 + std::ssize(known));
}

}  // namespace
}  // namespace wisp
