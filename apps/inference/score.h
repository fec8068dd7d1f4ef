// The perplexity of any text under a trained run of words. One thread.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include "apps/inference/inference.h"

namespace wisp {

struct Score {
  int64_t words = 0;        // words scored: all but the first; a line's end counts as one
  int64_t unknown = 0;      // scored words outside the vocabulary, which has "<unk>" for them
  int64_t characters = 0;   // length of the text
  double nats = 0.0;        // -log probability of all scored words, natural
  double known_nats = 0.0;  // part of `nats` that known words have

  double nats_per_word() const { return nats / static_cast<double>(words); }
  double perplexity() const { return std::exp(nats_per_word()); }
  /// The perplexity of known words alone; NaN if there are none.
  double known_perplexity() const {
    return std::exp(known_nats / static_cast<double>(words - unknown));
  }
  /// Bits per character to encode the text's words; an unknown word costs as much as <unk>.
  double bits_per_character() const {
    return nats / std::log(2.0) / static_cast<double>(characters);
  }
};

/// Scores the text in one column, data.window words at a time, with the state carried from its
/// beginning to its end. Throws Error for a text that is not UTF-8 or has fewer than two words, and
/// as TextReader.
Score score(Inference& model, std::string_view text);

}  // namespace wisp
