// Speech that is heard differently in each epoch. What is drawn depends on (seed, epoch, utterance)
// alone, never on workers or threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/speech/resample.h"

namespace wisp {

/// All are off by default.
struct AudioAugmentOptions {
  int64_t speed_percent = 0;     // played at 100 - this, 100 or 100 + this percent, each as often
  double gain_db = 0;            // made louder by up to this, or softer
  double noise_share = 0;        // of the utterances that noise is mixed into
  double noise_low_db = 10;      // the speech is louder than the noise by at least this,
  double noise_high_db = 30;     // and at most this
  int64_t frequency_masks = 0;   // how many
  int64_t frequency_width = 27;  // features that one covers at most
  int64_t time_masks = 0;        // how many
  int64_t time_width = 100;      // frames that one covers at most,
  double time_share = 1;         // and this share of the utterance's
};

/// Throws Error for options out of range.
void check(const AudioAugmentOptions& options);

/// What the draws depend on.
struct UtteranceKey {
  uint64_t seed;
  int64_t epoch;
  int64_t utterance;
};

/// Any thread may call.
class AudioAugment {
 public:
  /// `noises`: what is mixed in, at the rate of the speech. Throws Error for options out of range,
  /// noises without samples, or no noises where they are asked for.
  explicit AudioAugment(const AudioAugmentOptions& options,
                        std::vector<std::vector<float>> noises = {});

  /// How many samples perturb() makes of `samples`.
  int64_t length(int64_t samples, const UtteranceKey& key) const;
  /// And how few, and how many, with any key.
  int64_t shortest(int64_t samples) const { return speeds_.back().length(samples); }
  int64_t longest(int64_t samples) const { return speeds_.front().length(samples); }

  /// False where perturb() gives its argument, to the bit.
  bool perturbs(const UtteranceKey& key) const;

  /// Another speed (tempo and pitch), then noise, then another gain. The noise is one of those
  /// given, from a drawn place on and around its end; the ratio of powers, over the utterance, is
  /// uniform in dB, as the gain is. Nothing is mixed into silence. Results beyond ±1 are not cut.
  /// Source of the speeds: Ko et al. 2015, "Audio augmentation for speech recognition" (10
  /// percent).
  std::vector<float> perturb(std::span<const float> speech, const UtteranceKey& key) const;

  /// Zeros, the mean, in stripes of normalised `features`, (T, F) f32; stripes may overlap. A
  /// stripe's width is uniform in [0, widest], then its place. Source: Park et al. 2019,
  /// "SpecAugment", section 2 (here: without time warping).
  void mask(const Tensor& features, const UtteranceKey& key) const;

  /// A hash of the noises.
  uint64_t noises_digest() const;

 private:
  const Resampler& speed(const UtteranceKey& key) const;
  bool mixes(const UtteranceKey& key) const;
  void add_noise(std::vector<float>& samples, const UtteranceKey& key) const;

  AudioAugmentOptions options_;
  std::vector<std::vector<float>> noises_;
  std::vector<Resampler> speeds_;  // slower, the same, faster
};

}  // namespace wisp
