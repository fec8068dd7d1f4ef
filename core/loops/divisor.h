// Division of many numbers by one divisor without a division instruction. A device takes some
// hundred instructions for a 64-bit quotient, too many for each element of a kernel. Any thread may
// use it.
#pragma once

#include "core/tensor/dtype.h"

namespace wisp {

/// Source: Granlund and Montgomery 1994, for numbers of 31 bits: with d <= 2^l and m = floor(2^(31
/// + l) / d) + 1, floor(n / d) = floor(n m / 2^(31 + l)). Larger numbers use an ordinary division.
class Divisor {
 public:
  /// A divisor of 0, from an empty extent, becomes 1, because then nothing is divided.
  explicit Divisor(int64_t divisor) : divisor_(divisor > 0 ? divisor : 1) {
    while (int64_t{1} << (shift_ - 31) < divisor_ && shift_ < 62) ++shift_;
    multiplier_ = (uint64_t{1} << shift_) / static_cast<uint64_t>(divisor_) + 1;
  }

  WISP_HD int64_t value() const { return divisor_; }
  /// floor(n / divisor) for n >= 0.
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
