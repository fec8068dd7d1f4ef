// Tables in device memory for kernels that process many fields or tensors in one launch. Rows
// travel as arguments of small kernels, so nothing is allocated, pinned or waited for. Rows may
// hold addresses in device memory. One thread writes a table.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "core/device/stream.h"
#include "core/tensor/dtype.h"

namespace wisp {

/// The row, of `count` rows, that contains `place`: the last row with first(row) <= place.
template <class First>
WISP_HD int64_t row_of(int64_t place, int64_t count, const First& first) {
  int64_t low = 0, high = count;
  while (high - low > 1) {
    const int64_t middle = (low + high) / 2;
    (first(middle) <= place ? low : high) = middle;
  }
  return low;
}

/// A writer of consecutive values to device memory. Tasks of the stream may read them after
/// finish(). It lives on one thread's stack.
class TableWriter {
 public:
  static constexpr int64_t kWords = 448, kBytes = 8 * kWords;  // a kernel's argument has 4 KB
  struct Batch {
    uint64_t word[kWords];
  };

  /// `to` is aligned to 8 bytes.
  TableWriter(Stream stream, void* to)
      : stream_(std::move(stream)), to_(static_cast<uint64_t*>(to)) {}

  /// Appends a value; sizeof(T) is a multiple of 8 bytes.
  template <class T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0 && sizeof(T) <= kBytes);
    constexpr auto words = static_cast<int64_t>(sizeof(T) / 8);
    if (words_ + words > kWords) finish();
    T row = value;
    Stream::clear_padding(row);
    std::memcpy(batch_.word + words_, &row, sizeof row);
    words_ += words;
  }
  /// Launches the writes of all pending values.
  void finish();

 private:
  Stream stream_;
  uint64_t* to_;
  int64_t words_ = 0;
  Batch batch_{};
};

}  // namespace wisp
