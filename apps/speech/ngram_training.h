// Training of n-gram models on texts, and their perplexity on texts. Any thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "apps/speech/ngram.h"

namespace wisp {

/// Trains an interpolated Kneser-Ney model on a text with one sentence per line; blank lines are
/// skipped. Each length has one discount, D = n1 / (n1 + 2 n2), from its numbers of n-grams counted
/// once and twice; 0.5 if none is counted once. Below the highest order an n-gram's count is the
/// number of different words before it, unless it begins a sentence. Single words are interpolated
/// with 1 / V, where V includes </s> and <unk>; so unknown words have a probability too. A literal
/// <unk> or <UNK> in the text counts as the word <unk>; <eos> as a line's last word is the line's
/// end. After each state the probabilities of all
/// words except <s> sum to 1. Throws Error as check_utf8(), for a text without words, for <s> or
/// </s> in it, zero bytes, and words above 4 KiB. Source: Kneser and Ney 1995, in the interpolated
/// form of Chen and Goodman 1999 (not their modified one, whose three discounts need n-grams
/// counted three and four times).
NgramModel train_ngrams(std::string_view text, int32_t order);

struct NgramScore {
  int64_t sentences = 0;
  int64_t words = 0;    // a sentence's end counts as one
  int64_t unknown = 0;  // words that are <unk> to the model
  double nats = 0.0;    // -log probability of all words, natural
  double known_nats = 0.0;

  double perplexity() const { return std::exp(nats / static_cast<double>(words)); }
  /// The perplexity of known words alone.
  double known_perplexity() const {
    return std::exp(known_nats / static_cast<double>(words - unknown));
  }
};

/// Scores a text with one sentence per line; blank lines are skipped. Throws Error as
/// train_ngrams().
NgramScore score_ngrams(const NgramModel& model, std::string_view text);

}  // namespace wisp
