// A text as token numbers, cut into columns that are read in parallel, window by window. Training
// is truncated backpropagation through time, with state carried from window to window.
#pragma once

#include <string>
#include <vector>

#include "data/examples.h"

namespace wisp {

/// A text cut into C = Deal::batch columns; a worker has the same columns in every step. In
/// training column c holds the tokens [c L, c L + L] with L = (tokens - 1) / C, and the remaining
/// tokens at the end are not read. An evaluation reads every token once: the first columns have one
/// token more, and the other columns end with a target of -1. A window is `window` positions of
/// each column; the last window of an epoch holds the rest, including the additional token. A batch
/// has
///   inputs[0]   (T, N) i32: tokens, position by position
///   targets     (T N) i32: the next token
///   samples     (T N) i64: a key for each position of each column
/// Source: Mikolov et al. 2010; the columns are as in Zaremba et al. 2014.
class TextExamples final : public Examples {
 public:
  /// `name` is for messages: "ptb train". `tokens` are below `vocabulary`. In a step each column
  /// advances by `window` positions.
  TextExamples(std::string name, std::vector<int32_t> tokens, int64_t vocabulary, int64_t window);

  int64_t count() const override { return static_cast<int64_t>(tokens_.size()); }
  std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override;
  /// A hash of all tokens.
  uint64_t digest() const override;
  void shape(const Piece& piece, Batch& batch) const override;
  std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override;

 private:
  static constexpr int64_t kMostPositions = int64_t{1} << 32;  // limit of a column, for its keys

  const std::string name_;
  const std::vector<int32_t> tokens_;
  const int64_t window_;
};

}  // namespace wisp
