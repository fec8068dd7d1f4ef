// Elias omega codes, and a writer and a reader of bits; the first bit is the highest of byte 0. The
// code of n > 0 is built from its end. It ends in 0. While n > 1, the binary digits of n are put in
// front, and n becomes their number minus one: 1 is 0, 2 is 100, 3 is 110, 4 is 101000. Source:
// Elias 1975. Values; any thread.
#pragma once

#include "core/tensor/dtype.h"

namespace wisp {

struct OmegaCode {
  uint64_t bits;
  int length;
};

/// The code of n, 0 < n < 2^24; at most 36 bits.
WISP_HD inline OmegaCode omega_code(uint32_t n) {
  OmegaCode code{0, 1};
  while (n > 1) {
    const int digits = static_cast<int>(float_bits(static_cast<float>(n)) >> 23) - 126;
    code.bits |= static_cast<uint64_t>(n) << code.length;
    code.length += digits;
    n = static_cast<uint32_t>(digits - 1);
  }
  return code;
}

/// Writes bits one after the other; the caller provides enough bytes.
class BitWriter {
 public:
  WISP_HD explicit BitWriter(std::byte* out) : next_(reinterpret_cast<uint8_t*>(out)) {}
  /// Writes the lowest `count` bits of `bits`, at most 56.
  WISP_HD void put(uint64_t bits, int count) {
    held_ += count;
    window_ |= bits << (64 - held_);
    for (; held_ >= 8; held_ -= 8, window_ <<= 8) *next_++ = static_cast<uint8_t>(window_ >> 56);
  }
  /// Fills the last byte with ones; no code ends in a one.
  WISP_HD void finish() {
    if (held_ > 0) put((uint64_t{1} << (8 - held_)) - 1, 8 - held_);
  }
  WISP_HD std::byte* end() const { return reinterpret_cast<std::byte*>(next_); }

 private:
  uint8_t* next_;
  uint64_t window_ = 0;  // held bits, from the highest bit down
  int held_ = 0;
};

/// Reads bits. Behind the end it reads zeros, and left() is negative.
class BitReader {
 public:
  WISP_HD BitReader(const std::byte* begin, const std::byte* end)
      : next_(reinterpret_cast<const uint8_t*>(begin)),
        end_(reinterpret_cast<const uint8_t*>(end)),
        left_((end_ - next_) * 8) {}
  /// Reads `count` bits, at most 32.
  WISP_HD uint32_t take(int count) {
    for (; held_ < count; held_ += 8)
      window_ |= static_cast<uint64_t>(next_ < end_ ? *next_++ : 0) << (56 - held_);
    const auto bits = static_cast<uint32_t>(window_ >> 32 >> (32 - count));
    window_ <<= count;
    held_ -= count;
    left_ -= count;
    return bits;
  }
  /// Reads an omega code; 0 if the bits are not a code below 2^24.
  WISP_HD uint32_t omega() {
    uint32_t n = 1;
    while (take(1) == 1) {
      if (n >= 24) return 0;
      n = uint32_t{1} << n | take(static_cast<int>(n));
    }
    return n;
  }
  WISP_HD int64_t left() const { return left_; }
  /// Whether only the padding of the last byte is left.
  WISP_HD bool at_padding() const {
    if (left_ >= 8) return false;
    BitReader rest = *this;
    for (int64_t bit = left_; bit > 0; --bit)
      if (rest.take(1) == 0) return false;
    return true;
  }

 private:
  const uint8_t* next_;
  const uint8_t* end_;
  uint64_t window_ = 0;  // unread bits, from the highest bit down
  int held_ = 0;
  int64_t left_;
};

}  // namespace wisp
