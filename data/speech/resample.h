// Sound at another rate, by band-limited interpolation: y(t) = Σ x_k h(t - k), h a sinc under a
// Kaiser window. Source: Smith & Gossett 1984, "A flexible sampling-rate conversion method".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wisp {

/// Made for a pair of rates; any thread may call.
///
/// With N half of the lower rate: frequencies to 0.9 N pass, within 0.01 dB; above N they are 80 dB
/// down; the cutoff is 0.95 N. That takes 102 taps at the lower rate: 102 for each sample when the
/// rate rises, 102 · from / to when it falls. Zeros are before the first sample and behind the
/// last.
class Resampler {
 public:
  /// Only the rates' ratio counts. Throws Error unless both are 1 or more, and for pairs whose
  /// table of taps, (to / gcd) phases, would be above 64 MiB.
  Resampler(int64_t from, int64_t to);

  bool rates_are_equal() const { return from_ == to_; }
  /// Samples that `count` become: count · to / from, rounded up.
  int64_t length(int64_t count) const;
  /// Equal rates change nothing, to the bit.
  std::vector<float> resample(std::span<const float> samples) const;

 private:
  int64_t from_, to_;        // without common divisor
  int64_t half_ = 0;         // taps on each side of a sample's place
  std::vector<float> taps_;  // (to_, 2 half_): those of each place between two samples
};

}  // namespace wisp
