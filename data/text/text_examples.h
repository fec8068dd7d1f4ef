// A text as numbers, cut into columns that are read side by side, a window of positions at a time:
// truncated backpropagation through time, with state that is carried from window to window.
#pragma once

#include <string>
#include <vector>

#include "data/examples.h"

namespace wisp {

/// In training column c of C holds the tokens [c L, c L + L], L = (tokens - 1) / C; what is left
/// over at the end is not read. Otherwise every token is read once: the first columns are longer by
/// one, and the others end with a target of -1. A window is `window` positions of each column, the
/// last one of an epoch what is left, then with that one. A batch has
///   inputs[0]   (T, N) i32: tokens, position by position
///   targets     (T N) i32: the token that follows each
///   samples     (T N) i64: a key for each position of each column
/// Deal::batch is the number of columns C; a worker has the same columns in every step. Source:
/// Mikolov et al. 2010; the columns are those of Zaremba et al. 2014.
class TextExamples final : public Examples {
 public:
  /// `name` is for messages: "ptb train". `tokens` are below `vocabulary`; in a step each column
  /// moves on by `window` positions.
  TextExamples(std::string name, std::vector<int32_t> tokens, int64_t vocabulary, int64_t window);

  int64_t count() const override { return static_cast<int64_t>(tokens_.size()); }
  std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override;
  /// Of all tokens.
  uint64_t digest() const override;
  void shape(const Piece& piece, Batch& batch) const override;
  std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override;

 private:
  const std::string name_;
  const std::vector<int32_t> tokens_;
  const int64_t window_;
};

}  // namespace wisp
