#include "data/speech/audio_augment.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/io/checksum.h"

namespace wisp {
namespace {

// Indices of draws, unlike those of other draws with the same key. Masks use those from theirs on.
constexpr uint64_t kSpeed = 0x73706401;
constexpr uint64_t kGain = 0x73706402;
constexpr uint64_t kMixed = 0x73706403;
constexpr uint64_t kNoise = 0x73706404;
constexpr uint64_t kNoisePlace = 0x73706405;
constexpr uint64_t kNoiseLevel = 0x73706406;
constexpr uint64_t kFrequencyMask = 0x7370'6600'0000;
constexpr uint64_t kTimeMask = 0x7370'7400'0000;

double uniform(const SampleKey& key, uint64_t index, double low, double high) {
  return low + (high - low) * static_cast<double>(key.philox().uniform(index));
}

double power(std::span<const float> samples) {
  double sum = 0;
  for (const float s : samples) sum += static_cast<double>(s) * static_cast<double>(s);
  return sum / static_cast<double>(samples.size());
}

double amplitude(double db) { return std::pow(10, db / 20); }

/// Begin and end of mask number `mask` in [0, extent). The draws of its kind begin at `index`.
std::pair<int64_t, int64_t> stripe(const SampleKey& key, uint64_t index, int64_t mask,
                                   int64_t widest, int64_t extent) {
  const Philox philox = key.philox();
  const uint64_t at = index + 2 * static_cast<uint64_t>(mask);
  const int64_t width = philox.below64(at, std::min(widest, extent) + 1);
  const int64_t begin = philox.below64(at + 1, extent - width + 1);
  return {begin, begin + width};
}

template <class T>
void check_range(const char* what, T value, T low, T high) {
  WISP_CHECK(low <= value && value <= high, "audio augmentation: ", what, " is ", value,
             ", expected ", low, " to ", high);
}

}  // namespace

void check(const AudioAugmentOptions& options) {
  constexpr int64_t kMost = 1 << 20;
  check_range("speed_percent", options.speed_percent, int64_t{0}, int64_t{50});
  check_range("gain_db", options.gain_db, 0.0, 60.0);
  check_range("noise_share", options.noise_share, 0.0, 1.0);
  check_range("noise_low_db", options.noise_low_db, -60.0, 100.0);
  check_range("noise_high_db", options.noise_high_db, options.noise_low_db, 100.0);
  check_range("frequency_masks", options.frequency_masks, int64_t{0}, kMost);
  check_range("frequency_width", options.frequency_width, int64_t{0}, kMost);
  check_range("time_masks", options.time_masks, int64_t{0}, kMost);
  check_range("time_width", options.time_width, int64_t{0}, kMost);
  check_range("time_share", options.time_share, 0.0, 1.0);
}

AudioAugment::AudioAugment(const AudioAugmentOptions& options,
                           std::vector<std::vector<float>> noises)
    : options_(options), noises_(std::move(noises)) {
  check(options);
  WISP_CHECK(options.noise_share == 0 || !noises_.empty(), "audio augmentation: noise_share is ",
             options.noise_share, ", but there is no noise");
  for (const std::vector<float>& noise : noises_)
    WISP_CHECK(!noise.empty(), "audio augmentation: a noise has no samples");
  for (const int64_t change : {-options.speed_percent, int64_t{0}, options.speed_percent})
    speeds_.emplace_back(100 + change, 100);
}

const Resampler& AudioAugment::speed(const SampleKey& key) const {
  return speeds_[key.philox().below(kSpeed, static_cast<uint32_t>(speeds_.size()))];
}

bool AudioAugment::mixes(const SampleKey& key) const {
  return options_.noise_share > uniform(key, kMixed, 0, 1);
}

bool AudioAugment::perturbs(const SampleKey& key) const {
  return !speed(key).rates_are_equal() || mixes(key) || options_.gain_db > 0;
}

std::vector<float> AudioAugment::perturb(std::span<const float> speech,
                                         const SampleKey& key) const {
  std::vector<float> samples = speed(key).resample(speech);
  if (mixes(key)) add_noise(samples, key);
  if (options_.gain_db > 0) {
    const auto gain =
        static_cast<float>(amplitude(uniform(key, kGain, -options_.gain_db, options_.gain_db)));
    for (float& s : samples) s *= gain;
  }
  return samples;
}

void AudioAugment::add_noise(std::vector<float>& samples, const SampleKey& key) const {
  const Philox philox = key.philox();
  const std::vector<float>& whole =
      noises_[static_cast<size_t>(philox.below64(kNoise, std::ssize(noises_)))];
  auto at = static_cast<size_t>(philox.below64(kNoisePlace, std::ssize(whole)));
  std::vector<float> noise(samples.size());
  for (float& n : noise) {
    n = whole[at];
    if (++at == whole.size()) at = 0;
  }
  const double speech_power = power(samples), noise_power = power(noise);
  if (!(speech_power > 0 && noise_power > 0)) return;
  const double ratio_db = uniform(key, kNoiseLevel, options_.noise_low_db, options_.noise_high_db);
  const auto scale =
      static_cast<float>(std::sqrt(speech_power / noise_power) / amplitude(ratio_db));
  for (size_t i = 0; i < samples.size(); ++i) samples[i] += scale * noise[i];
}

void AudioAugment::mask(const Tensor& features, const SampleKey& key) const {
  WISP_CHECK(features.dtype() == DType::f32 && features.shape().rank() == 2,
             "audio augmentation: features are ", features.shape(), " ", name_of(features.dtype()),
             ", expected (T, F) f32");
  const int64_t frames = features.shape()[0], width = features.shape()[1];
  float* const data = features.data<float>();
  for (int64_t m = 0; m < options_.frequency_masks; ++m) {
    const auto [begin, end] = stripe(key, kFrequencyMask, m, options_.frequency_width, width);
    for (int64_t t = 0; t < frames; ++t)
      std::fill(data + t * width + begin, data + t * width + end, 0.0f);
  }
  const auto share = static_cast<int64_t>(options_.time_share * static_cast<double>(frames));
  const int64_t longest = std::min(options_.time_width, share);
  for (int64_t m = 0; m < options_.time_masks; ++m) {
    const auto [begin, end] = stripe(key, kTimeMask, m, longest, frames);
    std::fill(data + begin * width, data + end * width, 0.0f);
  }
}

uint64_t AudioAugment::noises_digest() const {
  uint64_t hash = hash_number(noises_.size(), hash_text(""));
  for (const std::vector<float>& noise : noises_)
    hash = hash_number(noise.size(), hash_number(crc32c(noise.data(), noise.size() * 4), hash));
  return hash;
}

}  // namespace wisp
