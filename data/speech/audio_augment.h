// Speech augmentation: speed, noise, gain and masks that differ in each epoch. Draws depend on
// (seed, epoch, utterance) alone, never on workers or threads. Any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/random.h"
#include "core/tensor/tensor.h"
#include "data/speech/resample.h"

namespace wisp {

/// Options of augmentation. All are off by default.
struct AudioAugmentOptions {
  int64_t speed_percent = 0;     // speeds 100 - this, 100, 100 + this percent, equally likely
  double gain_db = 0;            // largest change of loudness, up or down
  double noise_share = 0;        // share of the utterances with noise
  double noise_low_db = 10;      // smallest ratio of speech to noise
  double noise_high_db = 30;     // largest ratio of speech to noise
  int64_t frequency_masks = 0;   // number of stripes over frequencies
  int64_t frequency_width = 27;  // widest stripe, in features
  int64_t time_masks = 0;        // number of stripes over time
  int64_t time_width = 100;      // widest stripe, in frames
  double time_share = 1;         // widest stripe, as share of the utterance
};

/// Throws Error for options out of range.
void check(const AudioAugmentOptions& options);

class AudioAugment {
 public:
  /// `noises` are sounds to mix in, at the rate of the speech. Throws Error for options out of
  /// range, for noises without samples, and for missing noises if noise_share is above 0.
  explicit AudioAugment(const AudioAugmentOptions& options,
                        std::vector<std::vector<float>> noises = {});

  /// The number of samples that perturb() returns for `samples` samples.
  int64_t length(int64_t samples, const SampleKey& key) const { return speed(key).length(samples); }
  /// The smallest and the largest length() over all keys.
  int64_t shortest(int64_t samples) const { return speeds_.back().length(samples); }
  int64_t longest(int64_t samples) const { return speeds_.front().length(samples); }

  /// False if perturb() returns its argument unchanged, to the bit.
  bool perturbs(const SampleKey& key) const;

  /// Changes the speed (tempo and pitch), then mixes in noise, then changes the gain. The noise is
  /// one of `noises`, from a random start, repeated at its end. The ratio of powers over the
  /// utterance is uniform in dB, and so is the gain. Silence gets no noise. Results beyond ±1 are
  /// not clipped. Source of the speeds: Ko et al. 2015, "Audio augmentation for speech recognition"
  /// (10 percent).
  std::vector<float> perturb(std::span<const float> speech, const SampleKey& key) const;

  /// Writes zeros, the mean, into stripes of normalised `features`, (T, F) f32. Stripes may
  /// overlap. A stripe's width is uniform in [0, widest], then its place is uniform. Source: Park
  /// et al. 2019, "SpecAugment", section 2 (here without time warping).
  void mask(const Tensor& features, const SampleKey& key) const;

  /// A hash of the noises.
  uint64_t noises_digest() const;

 private:
  const Resampler& speed(const SampleKey& key) const;
  bool mixes(const SampleKey& key) const;
  void add_noise(std::vector<float>& samples, const SampleKey& key) const;

  AudioAugmentOptions options_;
  std::vector<std::vector<float>> noises_;
  std::vector<Resampler> speeds_;  // slower, unchanged, faster
};

}  // namespace wisp
