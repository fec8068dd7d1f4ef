// A resampler of sound by band-limited interpolation: y(t) = Σ x_k h(t - k), where h is a sinc with
// a Kaiser window. Source: Smith & Gossett 1984, "A flexible sampling-rate conversion method".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

/// A resampler for one pair of rates. Any thread may call.
///
/// N is half of the lower rate. Frequencies up to 0.9 N pass, within 0.01 dB; those above N are 80
/// dB down; the cutoff is 0.95 N. The filter has 102 taps at the lower rate: 102 for each sample if
/// the rate rises, 102 · from / to if it falls. Samples beyond both ends count as zero.
class Resampler {
 public:
  /// Only the ratio of the rates counts. Throws Error unless both are 1 or more, and if the table
  /// of taps, (to / gcd) phases, would be above 64 MiB.
  Resampler(int64_t from, int64_t to);

  bool rates_are_equal() const { return from_ == to_; }
  /// The number of samples that `count` samples become: count · to / from, rounded up.
  int64_t length(int64_t count) const { return (count * to_ + from_ - 1) / from_; }
  /// The resampled sound. With equal rates it is unchanged, to the bit.
  std::vector<float> resample(std::span<const float> samples) const;

 private:
  int64_t from_, to_;        // without a common divisor
  int64_t half_ = 0;         // taps on each side of a sample's position
  std::vector<float> taps_;  // (to_, 2 half_): a row for each position between two samples
};

}  // namespace wisp
