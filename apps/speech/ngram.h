// A back-off n-gram model: the probability of a word after other words. Any thread may read it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "apps/speech/ngram_trie.h"
#include "data/text/vocabulary.h"

namespace wisp {

/// The weights of an n-gram, log10 as in ARPA files.
struct NgramWeights {
  float probability = 0.0f;  // probability of the last word after the others
  float back_off = 0.0f;     // for words that are not listed after this n-gram
};

/// p(w | h) is the listed probability, or else back_off(h) p(w | h without its first word). Source:
/// Katz 1987, in the form of ARPA files (Paul and Baker 1992).
class NgramModel {
 public:
  static constexpr const char* kBegin = "<s>";
  static constexpr const char* kEnd = "</s>";
  static constexpr const char* kUnknown = Vocabulary::kUnknown;
  static constexpr float kNever = -99.0f;  // log10 of 0, as other programs write it

  /// The word under its name here: <UNK>, which some programs write, is <unk>.
  static std::string_view known_as(std::string_view word) {
    return word == "<UNK>" ? kUnknown : word;
  }

  /// The log probability of a word after a state, and the state that follows.
  struct Step {
    double log_probability;  // natural
    int32_t state;
  };

  /// `weights` holds the weights of each n-gram of the trie, whose words are numbers of the
  /// vocabulary. Throws Error if sizes disagree, for a vocabulary without kBegin and kEnd, and for
  /// weights that are not finite.
  NgramModel(Vocabulary words, NgramTrie ngrams, std::vector<NgramWeights> weights);

  const Vocabulary& words() const { return words_; }
  const NgramTrie& ngrams() const { return ngrams_; }
  const NgramWeights& weights(int32_t ngram) const { return weights_[static_cast<size_t>(ngram)]; }
  int32_t order() const { return order_; }
  /// Numbers of n-grams of one, two, … words.
  std::vector<int64_t> counts() const;

  /// The state at the beginning of a sentence. A state is the longest n-gram of the preceding words
  /// that can matter.
  int32_t begin() const { return begin_; }
  /// `word` is a number of words(): kUnknown's for an unknown word, kEnd's after the last word.
  Step next(int32_t state, int32_t word) const {
    double log10 = 0.0;
    int32_t found;
    while ((found = ngrams_.find(state, word)) == NgramTrie::kNone) {
      log10 += weights(state).back_off;
      state = ngrams_.suffix(state);
    }
    return {(log10 + weights(found).probability) * kNatsPerLog10,
            ngrams_.length(found) < order_ ? found : ngrams_.suffix(found)};
  }
  Step end(int32_t state) const { return next(state, end_); }

 private:
  static constexpr double kNatsPerLog10 = 2.302585092994045684;  // ln 10

  Vocabulary words_;
  NgramTrie ngrams_;
  std::vector<NgramWeights> weights_;
  int32_t order_ = 1, begin_ = 0, end_ = 0;
};

}  // namespace wisp
