// A back-off n-gram model: how probable a word is behind others. Any thread may ask.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "apps/speech/ngram_trie.h"
#include "data/text/vocabulary.h"

namespace wisp {

/// Of an n-gram, log10 as in ARPA files.
struct NgramWeights {
  float probability = 0.0f;  // of its last word behind the others
  float back_off = 0.0f;     // of what the others give to words that they are not listed with
};

/// p(w | h) is the listed one, or else back_off(h) p(w | h without its first word).
/// Source: Katz 1987, in the form of Paul and Baker's files 1992 ("ARPA").
class NgramModel {
 public:
  static constexpr const char* kBegin = "<s>";
  static constexpr const char* kEnd = "</s>";
  static constexpr const char* kUnknown = Vocabulary::kUnknown;
  static constexpr float kNever = -99.0f;  // log10 of 0, as other programs write it

  /// Some programs write <UNK>.
  static std::string_view known_as(std::string_view word) {
    return word == "<UNK>" ? kUnknown : word;
  }

  /// A word behind a state: how probable it is, and the state behind it.
  struct Step {
    double log_probability;  // natural
    int32_t state;
  };

  /// The weights of each n-gram of the trie, whose words are numbers of the vocabulary. Throws
  /// Error if sizes disagree, for a vocabulary without kBegin and kEnd, and for weights that are
  /// not finite.
  NgramModel(Vocabulary words, NgramTrie ngrams, std::vector<NgramWeights> weights);

  const Vocabulary& words() const { return words_; }
  const NgramTrie& ngrams() const { return ngrams_; }
  const NgramWeights& weights(int32_t ngram) const { return weights_[static_cast<size_t>(ngram)]; }
  int32_t order() const { return order_; }
  /// n-grams of one, two, … words.
  std::vector<int64_t> counts() const;

  /// The state in which a sentence begins. A state is the longest n-gram of the words before that
  /// can matter.
  int32_t begin() const { return begin_; }
  /// `word` is a number of words(): that of kUnknown for any other one, of kEnd behind the last.
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
