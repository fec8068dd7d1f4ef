// Which sequences of words an n-gram model knows, as a tree of numbers. Any thread may ask while
// none inserts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wisp {

/// An n-gram is its context, the n-gram of all its words but the last, and that word. Number 0 is
/// the empty one, 1 + w that of word w alone; others are numbered as they are inserted.
class NgramTrie {
 public:
  static constexpr int32_t kEmpty = 0;
  static constexpr int32_t kNone = -1;

  /// With the n-grams of words 0 … words-1 alone. Throws Error for more than 2^31 - 2.
  explicit NgramTrie(int64_t words);

  /// kNone, if it is not there. The memory that is touched is one hash slot's and one node's.
  int32_t find(int32_t context, int32_t word) const {
    if (context == kEmpty) return 1 + word;
    const int32_t found = slots_[slot_of(context, word)];
    return found == kEmpty ? kNone : found;
  }
  /// The number of an n-gram that is there or, now, is. Insert short ones before long ones: the
  /// suffix is looked up at once. Throws Error for more than 2^31 - 2.
  int32_t insert(int32_t context, int32_t word);

  /// n-grams, with the empty one.
  int64_t size() const { return static_cast<int64_t>(nodes_.size()); }
  int32_t context(int32_t ngram) const { return node(ngram).context; }
  int32_t word(int32_t ngram) const { return node(ngram).word; }
  int32_t length(int32_t ngram) const { return node(ngram).length; }
  /// The longest n-gram that is there of the last words of this one, but not of all.
  int32_t suffix(int32_t ngram) const { return node(ngram).suffix; }
  /// All words of an n-gram.
  std::vector<int32_t> words(int32_t ngram) const;

 private:
  struct Node {
    int32_t context, word, suffix, length;
  };

  const Node& node(int32_t ngram) const { return nodes_[static_cast<size_t>(ngram)]; }
  /// Where an n-gram of two or more words is in slots_, or where it belongs.
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
  std::vector<int32_t> slots_;  // of n-grams of two or more words: a power of two, half are empty
};

}  // namespace wisp
