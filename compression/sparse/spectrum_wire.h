// The wire of a sparse spectrum: which of a field's complex coefficients travel, and their values
// in a range-based float. A field's payload is, in 32-bit words,
//   f32 max                     the largest magnitude of a real or imaginary part
//   u32 bitmap[⌈C / 32⌉]        bit c % 32 of word c / 32: coefficient c travels
//   u32 codes[⌈2 k N / 32⌉]     N bits each, the lowest first: real and imaginary part of the k
//                               coefficients in ascending order; bits behind the last are 0
// A unit's is that of its fields, one after the other. Fields' ranges are fitted to max.
// Source: the status bitmap and packed values of Wang et al. 2020 as papers tell of it; the layout
// is ours.
#pragma once

#include "compression/compressor.h"
#include "core/random.h"

namespace wisp {

/// One field's. Sizes are host arithmetic.
class SpectrumWire {
 public:
  /// `kept` of `coefficients` travel, in range floats of so many bits.
  SpectrumWire(int64_t coefficients, int64_t kept, int bits, int mantissa)
      : coefficients_(coefficients), kept_(kept), bits_(bits), mantissa_(mantissa) {}

  int64_t coefficients() const { return coefficients_; }
  int64_t bytes() const { return 4 * (1 + bitmap_words() + code_words()); }
  /// Of pack and add; 8-byte aligned.
  int64_t scratch_bytes() const;

  /// Packs the `kept` coefficients of largest magnitude; equal ones are chosen by `random`.
  /// `spectrum` has pairs (real, imaginary), all finite. `payload` is 4-byte aligned.
  void pack(const Stream& stream, const float* spectrum, const Philox& random, std::byte* payload,
            std::byte* scratch) const;
  /// Adds a payload's coefficients to a spectrum; nothing of a malformed one, which is complained
  /// of as that of `field`.
  void add(const Stream& stream, const std::byte* payload, const Complaints& complaints,
           int64_t field, float* spectrum, std::byte* scratch) const;

 private:
  int64_t bitmap_words() const { return (coefficients_ + 31) / 32; }
  int64_t code_words() const { return (2 * kept_ * bits_ + 31) / 32; }
  /// Of all coefficients, to select from.
  Slice all() const { return {0, coefficients_}; }

  int64_t coefficients_, kept_;
  int bits_, mantissa_;
};

}  // namespace wisp
