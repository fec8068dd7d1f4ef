// Division of many numbers by one, without dividing: a device takes some hundred instructions for a
// 64-bit quotient, which kernels would spend on each element.
#pragma once

#include "core/tensor/dtype.h"

namespace wisp {

/// Source: Granlund and Montgomery 1994, for numbers of 31 bits: with d <= 2^l and
/// m = floor(2^(31 + l) / d) + 1, floor(n / d) = floor(n m / 2^(31 + l)). Larger numbers are
/// divided.
class Divisor {
 public:
  /// 0, of an extent that is empty, is as good as 1: nothing is divided by it.
  explicit Divisor(int64_t divisor) : divisor_(divisor > 0 ? divisor : 1) {
    while (int64_t{1} << (shift_ - 31) < divisor_ && shift_ < 62) ++shift_;
    multiplier_ = (uint64_t{1} << shift_) / static_cast<uint64_t>(divisor_) + 1;
  }

  WISP_HD int64_t value() const { return divisor_; }
  /// Of n >= 0.
  WISP_HD int64_t quotient(int64_t n) const {
    if ((n | divisor_) >> 31 != 0) return n / divisor_;
    return static_cast<int64_t>(static_cast<uint64_t>(n) * multiplier_ >> shift_);
  }
  WISP_HD int64_t remainder(int64_t n) const { return n - quotient(n) * divisor_; }

 private:
  int64_t divisor_;
  uint64_t multiplier_;
  int shift_ = 31;
};

}  // namespace wisp
