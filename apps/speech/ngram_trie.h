// The word sequences of an n-gram model, as a tree of numbers. Any thread may read it while none
// inserts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wisp {

/// An n-gram is a pair: its context (the n-gram of all words but the last) and its last word.
/// Number 0 is the empty n-gram and 1 + w is word w alone; others are numbered in order of
/// insertion.
class NgramTrie {
 public:
  static constexpr int32_t kEmpty = 0;
  static constexpr int32_t kNone = -1;

  /// Holds the words 0 … words-1 as n-grams of length 1. Throws Error for more than 2^31 - 2.
  explicit NgramTrie(int64_t words);

  /// The number of an n-gram; kNone if it is absent. Touches the memory of one hash slot and one
  /// node, unless slots collide.
  int32_t find(int32_t context, int32_t word) const {
    if (context == kEmpty) return 1 + word;
    const int32_t found = slots_[slot_of(context, word)];
    return found == kEmpty ? kNone : found;
  }
  /// Inserts an n-gram if it is absent, and returns its number. Insert short ones before long ones,
  /// as the suffix is looked up at once. Throws Error for more than 2^31 - 2.
  int32_t insert(int32_t context, int32_t word);

  /// Number of n-grams, including the empty one.
  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }
  int32_t context(int32_t ngram) const { return node(ngram).context; }
  int32_t word(int32_t ngram) const { return node(ngram).word; }
  int32_t length(int32_t ngram) const { return node(ngram).length; }
  /// The longest n-gram in the trie that is a proper suffix of this one.
  int32_t suffix(int32_t ngram) const { return node(ngram).suffix; }
  /// The words of an n-gram, in order.
  std::vector<int32_t> words(int32_t ngram) const;

 private:
  struct Node {
    int32_t context, word, suffix, length;
  };

  const Node& node(int32_t ngram) const { return nodes_[static_cast<size_t>(ngram)]; }
  /// The index in slots_ at which an n-gram of two or more words is, or belongs.
  size_t slot_of(int32_t context, int32_t word) const {
    uint64_t hash = static_cast<uint64_t>(context) << 32 | static_cast<uint32_t>(word);
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;  // SplitMix64, Steele et al. 2014
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
    const size_t mask = slots_.size() - 1;
    for (size_t slot = (hash ^ (hash >> 31)) & mask;; slot = (slot + 1) & mask) {
      const int32_t there = slots_[slot];
      if (there == kEmpty || (node(there).context == context && node(there).word == word))
        return slot;
    }
  }
  void grow();

  int64_t words_;
  std::vector<Node> nodes_;
  std::vector<int32_t> slots_;  // hash table of longer n-grams: a power of two, half empty
};

}  // namespace wisp
