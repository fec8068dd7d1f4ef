#include "data/text/text_examples.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/io/checksum.h"

namespace wisp {

TextExamples::TextExamples(std::string name, std::vector<int32_t> tokens, int64_t vocabulary,
                           int64_t window)
    : name_(std::move(name)), tokens_(std::move(tokens)), window_(window) {
  WISP_CHECK(window_ > 0, name_, ": a window of ", window_, " positions, expected at least 1");
  for (size_t i = 0; i < tokens_.size(); ++i) {
    WISP_CHECK(tokens_[i] >= 0 && tokens_[i] < vocabulary, name_, ": token ", i, " is ", tokens_[i],
               ", expected 0 to ", vocabulary - 1);
  }
}

std::vector<Piece> TextExamples::epoch(int64_t epoch, const Deal& deal) const {
  deal.check(name_);
  const int64_t length = (count() - 1) / deal.batch;
  WISP_CHECK(length > 0, name_, ": ", count(), " tokens for ", deal.batch, " columns (",
             deal.training ? "train.batch" : "train.eval_batch; 0: train.batch",
             "), expected at least ", deal.batch + 1);
  WISP_CHECK(length < kMostPositions, name_, ": a column of ", length,
             " tokens, expected fewer than ", kMostPositions);
  const int64_t longer = deal.training ? 0 : (count() - 1) % deal.batch;  // columns that are longer
  const int64_t columns = deal.batch / deal.pieces();                     // columns per piece
  std::vector<Piece> pieces;
  for (int64_t begin = 0; begin < length; begin += window_) {
    const bool last = begin + window_ >= length;
    const int64_t positions = last ? length - begin + (longer > 0) : window_;
    for (int64_t micro = 0; micro < deal.accumulate; ++micro) {
      const int64_t first = (micro * deal.workers + deal.rank) * columns;
      Piece piece{.begin = begin,
                  .length = positions,
                  .longer = longer,
                  .epoch = epoch,
                  .seed = deal.seed,
                  .count = columns * positions,
                  .of_worker = columns * deal.accumulate * positions,
                  .of_step = deal.batch * positions,
                  .work = columns * positions,
                  .begins = begin == 0};
      if (last && longer > 0)
        piece.work -= columns - std::clamp<int64_t>(longer - first, 0, columns);
      piece.rows.resize(static_cast<size_t>(columns));
      std::iota(piece.rows.begin(), piece.rows.end(), first);
      piece.stride = length;
      pieces.push_back(std::move(piece));
    }
  }
  return pieces;
}

uint64_t TextExamples::digest() const {
  const uint32_t tokens = crc32c(tokens_.data(), tokens_.size() * sizeof(int32_t));
  return hash_number(tokens, hash_number(tokens_.size(), hash_text("")));
}

void TextExamples::shape(const Piece& piece, Batch& batch) const {
  const auto columns = static_cast<int64_t>(piece.rows.size());
  const int64_t targets = piece.length * columns;
  batch.fit({piece.length, columns}, DType::i32, {targets}, targets);
}

std::string TextExamples::fill(const Piece& piece, int64_t row, const Batch& batch) const {
  const auto columns = static_cast<int64_t>(piece.rows.size());
  const int64_t column = piece.rows[static_cast<size_t>(row)];
  const int64_t begin = column * piece.stride + std::min(column, piece.longer) + piece.begin;
  const int64_t targets =
      std::min(piece.length, piece.stride + (column < piece.longer) - piece.begin);
  const int32_t* tokens = tokens_.data() + begin;
  auto* input = batch.inputs[0].data<int32_t>();
  auto* target = batch.targets.data<int32_t>();
  auto* key = batch.samples.data<int64_t>();
  for (int64_t t = 0; t < piece.length; ++t) {
    const int64_t at = t * columns + row;
    input[at] = tokens[t];
    target[at] = t < targets ? tokens[t + 1] : -1;
    key[at] = column * kMostPositions + piece.begin + t;
  }
  return {};
}

}  // namespace wisp
