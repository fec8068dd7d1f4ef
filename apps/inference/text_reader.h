// A trained run that reads a text word by word, in one column, and predicts the next word. One
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "apps/inference/inference.h"
#include "data/text/vocabulary.h"

namespace wisp {

class TextReader {
 public:
  /// Starts with an empty text. `model` outlives it. Throws Error for a model that does not read
  /// words, whose run has no vocabulary, or that carries no state from word to word.
  explicit TextReader(Inference& model);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Reads more tokens. Returns the logits of each token's successor, (tokens, classes): first the
  /// vocabulary's words, then any classes that model.classes adds. Throws Error if the model's
  /// output has another shape.
  Tensor read(std::span<const int32_t> tokens);

 private:
  Inference& model_;
  const Vocabulary vocabulary_;
  Carry state_;
};

}  // namespace wisp
