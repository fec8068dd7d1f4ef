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
  SpectrumWire() = default;
  /// `kept` of `coefficients` travel, in range floats of so many bits.
  SpectrumWire(int64_t coefficients, int64_t kept, int bits, int mantissa)
      : all_{0, coefficients}, kept_(kept), bits_(bits), mantissa_(mantissa) {}

  WISP_HD int64_t coefficients() const { return all_.numel; }
  WISP_HD int64_t kept() const { return kept_; }
  WISP_HD int bits() const { return bits_; }
  WISP_HD int mantissa() const { return mantissa_; }
  /// Of all coefficients, to select from.
  const Slice& all() const { return all_; }

  int64_t bytes() const { return 4 * (1 + bitmap_words() + code_words()); }
  WISP_HD int64_t bitmap_words() const { return (coefficients() + 31) / 32; }
  WISP_HD int64_t code_words() const { return (2 * kept_ * bits_ + 31) / 32; }

 private:
  Slice all_{};
  int64_t kept_ = 0;
  int bits_ = 0, mantissa_ = 0;
};

/// A field's spectrum among others that are packed or added with it.
struct FieldSpectrum {
  SpectrumWire wire;
  Philox random{0, 0, 0};  // decides between equal magnitudes
  int64_t field = 0;       // its number in the unit, for complaints
};
/// Spectra have pairs (real, imaginary) and lie one behind the other, as do their payloads.
using Spectra = std::span<const FieldSpectrum>;

/// Scratch of the next two; 8-byte aligned.
int64_t spectra_scratch_bytes(Spectra spectra);
/// Packs of each spectrum the coefficients of largest magnitude. All numbers are finite; `payload`
/// is 4-byte aligned.
void pack_spectra(const Stream& stream, Spectra spectra, const float* numbers, std::byte* payload,
                  std::byte* scratch);
/// Adds payloads' coefficients to spectra; nothing of a malformed one, which is complained of.
void add_spectra(const Stream& stream, Spectra spectra, const std::byte* payload,
                 const Complaints& complaints, float* numbers, std::byte* scratch);

}  // namespace wisp
