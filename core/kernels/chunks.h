// The chunks of rows in which many threads add up a batch norm.
#pragma once

#include <algorithm>

#include "core/loops/divisor.h"
#include "core/loops/parallel_teams.h"
#include "core/loops/unrolled.h"
#include "core/norms.h"

namespace wisp {

/// The cutting of rows into chunks. Depends on the extents alone.
struct Chunks {
  static constexpr int64_t kLeastRows = 32;
  static constexpr int64_t kMostValues = 1 << 19;  // limit over all chunks: 8 per thread of a GPU
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
        std::max<int64_t>(1, kMostValues / std::max<int64_t>(1, s.channels));  // most chunks
    return std::max(kLeastRows, (s.rows + most - 1) / most);
  }
};

/// The index of a kernel without sums: kCount channels of kRows rows. The last index may have fewer
/// rows.
template <int64_t kCount>
struct RowsIndex {
  static constexpr int64_t kRows = 4;
  int64_t rows, channels;
  Divisor groups;  // groups of kCount channels

  explicit RowsIndex(const BatchNormSpec& s)
      : rows(s.rows), channels(s.channels), groups(s.channels / kCount) {}
  int64_t count() const { return (rows + kRows - 1) / kRows * groups.value(); }
  WISP_HD int64_t channel(int64_t i) const { return groups.remainder(i) * kCount; }
  /// Calls call(at, n) for n rows, as in unrolled(). The channels of the first one begin at element
  /// `at`.
  template <class Call>
  WISP_HD void each_row(int64_t i, const Call& call) const {
    const int64_t block = groups.quotient(i), first = block * kRows;
    const int64_t at = first * channels + (i - block * groups.value()) * kCount;
    const int64_t left = rows - first;
    unrolled<kRows>(left < kRows ? left : kRows,
                    [&](int64_t row, auto n) { call(at + row * channels, n); });
  }
};

/// The index of a kernel with a value for each chunk and channel: kCount channels of a chunk.
template <int64_t kCount>
struct ChunkIndex {
  Chunks chunks;
  Divisor groups;  // groups of kCount channels

  explicit ChunkIndex(const Chunks& all) : chunks(all), groups(all.channels / kCount) {}
  int64_t count() const { return chunks.count() * groups.value(); }
  WISP_HD int64_t chunk(int64_t i) const { return groups.quotient(i); }
  WISP_HD int64_t channel(int64_t i) const { return groups.remainder(i) * kCount; }
  /// The first element of the index in its chunk.
  WISP_HD int64_t first(int64_t i) const {
    return chunk(i) * chunks.chunk_rows * chunks.channels + channel(i);
  }
};

/// The channels [first, first + width). A team adds up their values over all chunks.
struct TeamChannels {
  static constexpr int64_t kMost = 8;  // fewest floats that a GPU reads at once
  static constexpr int64_t kSums = parallel::kLanes * kMost;
  int64_t first, width;

  static int64_t items(int64_t channels) { return (channels + kMost - 1) / kMost; }
  WISP_HD TeamChannels(int64_t item, int64_t channels)
      : first(item * kMost), width(channels - first < kMost ? channels - first : kMost) {}

  /// The sum of lane i / kMost for channel first + i % kMost, in the order of reduce_lanes; i is in
  /// [0, kSums). value(chunk, channel) is a chunk's summand.
  template <class Value>
  WISP_HD double lane_sum(int64_t i, int64_t chunks, const Value& value) const {
    const int64_t lane = i / kMost, channel = i % kMost;
    double sum = 0.0;
    if (channel >= width) return sum;
    unrolled<16>((chunks - lane + parallel::kLanes - 1) / parallel::kLanes,
                 [&](int64_t step, auto n) {
                   double more[n.value];
                   for (int64_t s = 0; s < n.value; ++s)
                     more[s] = value(lane + (step + s) * parallel::kLanes, first + channel);
                   for (int64_t s = 0; s < n.value; ++s) sum += more[s];
                 });
    return sum;
  }
  /// The sum of a channel over all lanes, added up as a tree.
  WISP_HD static double total(const double* sums, int64_t channel) {
    double lane[parallel::kLanes];
    for (int64_t l = 0; l < parallel::kLanes; ++l) lane[l] = sums[l * kMost + channel];
    for (int64_t half = parallel::kLanes / 2; half > 0; half /= 2)
      for (int64_t l = 0; l < half; ++l) lane[l] += lane[l + half];
    return lane[0];
  }
};

}  // namespace wisp
