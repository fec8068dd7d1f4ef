// The pieces of a reduction, which travel one after the other: slices of memory, cut by bytes.
// Pure arithmetic with the same result on every rank. For one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "distributed/communicator/collective.h"

namespace wisp {

class Pieces {
 public:
  /// Cuts `slices`, which the caller keeps until the last next(), into about equal pieces of whole
  /// grains of `grain` bytes; the last piece takes the rest. There are as many pieces as whole
  /// `piece_bytes`, at most as many as whole grains, and at least one. 0 `piece_bytes`: one.
  void cut(std::span<const Bytes> slices, int64_t piece_bytes, int64_t grain) {
    slices_ = slices;
    grain_ = grain;
    bytes_ = total_bytes(slices);
    const int64_t most = piece_bytes > 0 ? std::min(bytes_ / piece_bytes, bytes_ / grain) : 1;
    pieces_ = std::max(most, int64_t{1});
    next_ = 0;
  }

  int64_t bytes() const { return bytes_; }
  bool more() const { return next_ < pieces_; }
  /// The slices of the next piece, valid until the next call.
  std::span<const Bytes> next() {
    const int64_t from = border(next_), to = border(++next_);
    piece_.clear();
    int64_t begin = 0;  // begin of the slice
    for (const Bytes& slice : slices_) {
      const int64_t first = std::max(from, begin), last = std::min(to, begin + slice.bytes);
      if (first < last) piece_.push_back({slice.data + (first - begin), last - first});
      begin += slice.bytes;
    }
    return piece_;
  }

 private:
  int64_t border(int64_t piece) const {
    return piece == pieces_ ? bytes_ : bytes_ / grain_ * piece / pieces_ * grain_;
  }

  std::span<const Bytes> slices_;
  std::vector<Bytes> piece_;
  int64_t bytes_ = 0, grain_ = 1;
  int64_t pieces_ = 0, next_ = 0;  // number of pieces; index of the next
};

}  // namespace wisp
