// The wire of a sparse spectrum: a bitmap of the complex coefficients of a field that are sent, and
// their values in a range-based float. A field's payload is, in 32-bit words,
//   f32 max                     the largest magnitude of a real or imaginary part
//   u32 bitmap[⌈C / 32⌉]        bit c % 32 of word c / 32: coefficient c is sent
//   u32 codes[⌈2 k N / 32⌉]     N bits each, the lowest first: real and imaginary part of the k
//                               coefficients in ascending order; bits behind the last are 0
// A unit's payload has the payloads of its fields, one after the other. Each field's float range
// ends at its max. Used by the comm thread. Source: the status bitmap and packed values of Wang et
// al. 2020, as described by other papers; the layout is ours.
#pragma once

#include "compression/compressor.h"
#include "core/random.h"

namespace wisp {

/// The wire of one field. Sizes are host arithmetic.
class SpectrumWire {
 public:
  SpectrumWire() = default;
  /// `kept` of `coefficients` are sent, as range floats of `bits` bits with `mantissa` mantissa
  /// bits.
  SpectrumWire(int64_t coefficients, int64_t kept, int bits, int mantissa)
      : all_{0, coefficients}, kept_(kept), bits_(bits), mantissa_(mantissa) {}

  WISP_HD int64_t coefficients() const { return all_.numel; }
  WISP_HD int64_t kept() const { return kept_; }
  WISP_HD int bits() const { return bits_; }
  WISP_HD int mantissa() const { return mantissa_; }
  /// The range of all coefficients, to select from.
  const Slice& all() const { return all_; }

  int64_t bytes() const { return 4 * (1 + bitmap_words() + code_words()); }
  WISP_HD int64_t bitmap_words() const { return (coefficients() + 31) / 32; }
  WISP_HD int64_t code_words() const { return (2 * kept_ * bits_ + 31) / 32; }

 private:
  Slice all_{};
  int64_t kept_ = 0;
  int bits_ = 0, mantissa_ = 0;
};

/// The spectrum of one field among several that are packed or added together.
struct FieldSpectrum {
  SpectrumWire wire;
  Philox random{0, 0, 0};  // orders equal magnitudes
  int64_t field = 0;       // index in the unit, for complaints
};
/// Spectra are pairs (real, imaginary) and lie one behind the other, as do their payloads.
using Spectra = std::span<const FieldSpectrum>;

/// Bytes of scratch for pack_spectra() and add_spectra(); 8-byte aligned.
int64_t spectra_scratch_bytes(Spectra spectra);
/// Packs the coefficients of largest magnitude of each spectrum. All numbers are finite; `payload`
/// is 4-byte aligned.
void pack_spectra(const Stream& stream, Spectra spectra, const float* numbers, std::byte* payload,
                  std::byte* scratch);
/// Adds the payloads' coefficients to the spectra. A malformed payload adds nothing and causes a
/// complaint.
void add_spectra(const Stream& stream, Spectra spectra, const std::byte* payload,
                 const Complaints& complaints, float* numbers, std::byte* scratch);

}  // namespace wisp
