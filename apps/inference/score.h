// The perplexity of a text of one's own, by a trained run of words.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "apps/inference/inference.h"

namespace wisp {

struct Score {
  int64_t words = 0;       // that were scored, a line's end is one: all but the text's first
  int64_t unknown = 0;     // of these, those that the vocabulary does not have; it has "<unk>"
  int64_t characters = 0;  // of the text
  double nats = 0.0;       // -log probability of all words
  double known_nats = 0.0;

  double nats_per_word() const { return nats / static_cast<double>(words); }
  double perplexity() const { return std::exp(nats_per_word()); }
  /// Of the words that are not unknown; NaN if there are none.
  double known_perplexity() const {
    return std::exp(known_nats / static_cast<double>(words - unknown));
  }
  /// To tell the text's words; an unknown word takes what <unk> does.
  double bits_per_character() const {
    return nats / std::log(2.0) / static_cast<double>(characters);
  }
};

/// Reads the text in one column, as many words at once as the run's data.window, with the state
/// carried from its beginning to its end. Throws Error for a text that is no UTF-8 or has fewer
/// than two words, and as TextReader.
Score score(Inference& model, std::string_view text);

}  // namespace wisp
