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

/// The wire of one field: `kept` of its coefficients are sent, as range floats of `bits` bits with
/// `mantissa` mantissa bits.
struct SpectrumWire {
  int64_t coefficients = 0, kept = 0;
  int bits = 0, mantissa = 0;

  int64_t bytes() const { return 4 * (1 + bitmap_words() + code_words()); }
  WISP_HD int64_t bitmap_words() const { return (coefficients + 31) / 32; }
  WISP_HD int64_t code_words() const { return (2 * kept * bits + 31) / 32; }
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
