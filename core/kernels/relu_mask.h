// A bit for each element of y: whether ReLU passed it on. The backward pass of a batch norm reads
// these bits in place of y. They take a byte for each 16 bytes of y.
#pragma once

#include <cstdint>

#include "core/kernels/few.h"

namespace wisp {

/// A byte has the bits of kFew<T> neighbouring channels, or of one if `channels` is no multiple of
/// kFew<T>. Thus a byte has one writer: the thread that computes these elements of y.
template <class T>
class ReluMask {
 public:
  /// No mask: y is not marked.
  ReluMask() = default;
  /// `bits` has bytes_of() bytes. It may be null, for no mask.
  ReluMask(uint8_t* bits, int64_t channels) : bits_(bits), shift_(shift_of(channels)) {}

  static int64_t bytes_of(int64_t rows, int64_t channels) {
    return (rows * channels) >> shift_of(channels);
  }
  WISP_HD explicit operator bool() const { return bits_ != nullptr; }
  /// The number of elements that a byte describes.
  WISP_HD int64_t width() const { return int64_t{1} << shift_; }

  /// Marks elements [at, at + kCount) of y, whose values these are. kCount is width(), and `at` a
  /// multiple of it.
  template <int64_t kCount>
  WISP_HD void mark(int64_t at, const T (&y)[kCount]) const {
    unsigned passed = 0;
    for (int64_t k = 0; k < kCount; ++k) passed |= unsigned{wide(y[k]) > 0} << k;
    bits_[at >> shift_] = static_cast<uint8_t>(passed);
  }
  /// Bit k tells of element at + k, for 0 <= k < width() - at % width().
  WISP_HD unsigned passed(int64_t at) const {
    return unsigned{bits_[at >> shift_]} >> (at & (width() - 1));
  }

 private:
  static int shift_of(int64_t channels) {
    if (channels % kFew<T> != 0) return 0;
    return kFew<T> == 8 ? 3 : kFew<T> == 4 ? 2 : 1;
  }

  uint8_t* bits_ = nullptr;
  int shift_ = 0;
};

}  // namespace wisp
