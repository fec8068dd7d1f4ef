// How the rows of a batch norm are cut, so that many threads may add them up.
#pragma once

#include <algorithm>

#include "core/backend.h"
#include "core/loops/divisor.h"

namespace wisp {

/// How rows are cut: depends on the extents alone.
struct Chunks {
  static constexpr int64_t kLeastRows = 32;
  static constexpr int64_t kMostValues = 1 << 19;  // of all chunks: a GPU's threads at 8 each
  int64_t rows, channels, chunk_rows;

  explicit Chunks(const BatchNormSpec& s)
      : rows(s.rows), channels(s.channels), chunk_rows(rows_at_least(s)) {}

  WISP_HD int64_t count() const { return (rows + chunk_rows - 1) / chunk_rows; }
  WISP_HD int64_t rows_of(int64_t chunk) const {
    const int64_t left = rows - chunk * chunk_rows;
    return left < chunk_rows ? left : chunk_rows;
  }

 private:
  static int64_t rows_at_least(const BatchNormSpec& s) {
    const int64_t most =
        std::max<int64_t>(1, kMostValues / std::max<int64_t>(1, s.channels));  // chunks
    return std::max(kLeastRows, (s.rows + most - 1) / most);
  }
};

/// An index of a kernel with a value for each chunk and channel: kCount channels of a chunk.
template <int64_t kCount>
struct ChunkIndex {
  Chunks chunks;
  Divisor groups;  // of channels

  explicit ChunkIndex(const Chunks& all) : chunks(all), groups(all.channels / kCount) {}
  int64_t count() const { return chunks.count() * groups.value(); }
  WISP_HD int64_t chunk(int64_t i) const { return groups.quotient(i); }
  WISP_HD int64_t channel(int64_t i) const { return groups.remainder(i) * kCount; }
  /// The first element of the chunk.
  WISP_HD int64_t first(int64_t i) const {
    return chunk(i) * chunks.chunk_rows * chunks.channels + channel(i);
  }
};

}  // namespace wisp
