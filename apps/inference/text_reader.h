// A trained run that reads a text word by word, in one column, and says what may follow. One
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "apps/inference/inference.h"
#include "data/text/vocabulary.h"

namespace wisp {

class TextReader {
 public:
  /// Has read nothing yet. `model` outlives it. Throws Error for a model that reads no words, whose
  /// run has no vocabulary of words, or that carries no state from word to word.
  explicit TextReader(Inference& model);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Reads on. Returns the logits of what follows each token, (tokens, classes): of the
  /// vocabulary's words, then of classes that have none, if model.classes is more than there are
  /// words. Throws Error if the model's output is of another shape.
  Tensor read(std::span<const int32_t> tokens);

 private:
  Inference& model_;
  const Vocabulary vocabulary_;
  Carry state_;
};

}  // namespace wisp
