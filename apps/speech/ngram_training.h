// n-gram models from texts, and how well they tell texts. Any thread may call.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "apps/speech/ngram.h"

namespace wisp {

/// Interpolated Kneser-Ney of a text with a sentence on each line; blank lines are none. One
/// discount for each length, D = n1 / (n1 + 2 n2) of its n-grams that are counted once and twice,
/// 0.5 if none is counted once. Counts below the highest order are numbers of different words that
/// stand before, but for n-grams that begin a sentence. Words alone are interpolated with 1 / V, V
/// with </s> and <unk>, so an unknown word has a probability too; it is a word of the text if the
/// text has it. The probabilities of all words but <s> sum up to 1 behind each state.
/// <UNK> is <unk>. Throws Error as check_utf8(), for a text without words, for one with <s> or
/// </s>, bytes of zero, and words above 4 KiB. Source: Kneser and Ney 1995, in the interpolated
/// form of Chen and Goodman 1999 (not their modified one, whose three discounts need n-grams that
/// are counted three and four times).
NgramModel train_ngrams(std::string_view text, int32_t order);

struct NgramScore {
  int64_t sentences = 0;
  int64_t words = 0;    // the end of a sentence is one
  int64_t unknown = 0;  // of these, those that the model does not have, or has as <unk>
  double nats = 0.0;    // -log probability of all words
  double known_nats = 0.0;

  double perplexity() const { return std::exp(nats / static_cast<double>(words)); }
  /// Of the words that are not unknown.
  double known_perplexity() const {
    return std::exp(known_nats / static_cast<double>(words - unknown));
  }
};

/// Each line is a sentence; blank lines are none. Throws Error as train_ngrams().
NgramScore score_ngrams(const NgramModel& model, std::string_view text);

}  // namespace wisp
