#include "data/speech/audio_augment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

std::vector<float> tone(int64_t count, float amplitude = 0.5f) {
  std::vector<float> samples;
  for (int64_t i = 0; i < count; ++i)
    samples.push_back(amplitude * std::sin(0.1f * static_cast<float>(i)));
  return samples;
}

double power(const std::vector<float>& samples) {
  double sum = 0;
  for (const float s : samples) sum += static_cast<double>(s) * static_cast<double>(s);
  return sum / static_cast<double>(samples.size());
}

double decibels(double ratio) { return 10 * std::log10(ratio); }

Tensor ones(int64_t frames, int64_t features) {
  Tensor tensor({frames, features}, DType::f32);
  std::fill_n(tensor.data<float>(), tensor.numel(), 1.0f);
  return tensor;
}

std::vector<float> floats_of(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.numel()};
}

/// The numbers of frames and features that the key masks.
struct Masked {
  int64_t frames = 0, features = 0;
};
Masked masked(const AudioAugment& augment, const SampleKey& key, int64_t frames, int64_t features) {
  const Tensor tensor = ones(frames, features);
  augment.mask(tensor, key);
  Masked result;
  for (int64_t t = 0; t < frames; ++t) {
    const float* row = tensor.data<float>() + t * features;
    result.frames += std::all_of(row, row + features, [](float v) { return v == 0; });
  }
  for (int64_t f = 0; f < features; ++f) {
    bool all = true;
    for (int64_t t = 0; t < frames; ++t) all = all && tensor.data<float>()[t * features + f] == 0;
    result.features += all;
  }
  return result;
}

TEST(AudioAugment, IsOffByDefault) {
  const AudioAugment augment({});
  const SampleKey key{1, 2, 3};
  EXPECT_EQ(augment.perturb(tone(100), key), tone(100));
  EXPECT_EQ(augment.length(100, key), 100);
  const Tensor features = ones(5, 4);
  augment.mask(features, key);
  EXPECT_EQ(floats_of(features), std::vector<float>(20, 1.0f));
}

TEST(AudioAugment, IsKeyedBySeedEpochAndUtterance) {
  const AudioAugment augment({.gain_db = 6, .noise_share = 1, .time_masks = 2}, {tone(77, 0.1f)});
  const auto heard = [&](const SampleKey& key) {
    std::vector<float> result = augment.perturb(tone(500), key);
    const Tensor features = ones(300, 2);
    augment.mask(features, key);
    const std::vector<float> mask = floats_of(features);
    result.insert(result.end(), mask.begin(), mask.end());
    return result;
  };
  const std::vector<float> here = heard({1, 2, 3});
  EXPECT_EQ(heard({1, 2, 3}), here);
  EXPECT_NE(heard({2, 2, 3}), here);
  EXPECT_NE(heard({1, 3, 3}), here);
  EXPECT_NE(heard({1, 2, 4}), here);
}

TEST(AudioAugment, PlaysAtThreeSpeeds) {
  const AudioAugment augment({.speed_percent = 10});
  std::map<int64_t, int> lengths;
  for (int64_t i = 0; i < 300; ++i) {
    const SampleKey key{1, 0, i};
    const std::vector<float> samples = augment.perturb(tone(990), key);
    EXPECT_EQ(augment.length(990, key), std::ssize(samples));
    ++lengths[std::ssize(samples)];
    EXPECT_TRUE(samples.size() != 990 || samples == tone(990));
  }
  // 100 each, within 5 deviations of 8.2
  ASSERT_EQ(lengths.size(), 3u);
  for (const int64_t length : {1100, 990, 900}) EXPECT_NEAR(lengths[length], 100, 41) << length;
}

TEST(AudioAugment, GainIsWithinItsBounds) {
  const AudioAugment augment({.gain_db = 6});
  double least = 100, most = -100;
  for (int64_t i = 0; i < 200; ++i) {
    const double gain = decibels(power(augment.perturb(tone(100), {1, 0, i})) / power(tone(100)));
    least = std::min(least, gain);
    most = std::max(most, gain);
  }
  EXPECT_GE(least, -6.001);
  EXPECT_LE(most, 6.001);
  EXPECT_LT(least, -5);
  EXPECT_GT(most, 5);
}

TEST(AudioAugment, NoiseIsAsLoudAsDrawn) {
  const AudioAugment augment({.noise_share = 0.5, .noise_low_db = 5, .noise_high_db = 15},
                             {{1, -1, 0.5f}, {0.001f, -0.001f, 0}});
  const std::vector<float> speech = tone(3000);
  int clean = 0;
  double least = 100, most = -100;
  for (int64_t i = 0; i < 200; ++i) {
    std::vector<float> noise = augment.perturb(speech, {1, 0, i});
    if (noise == speech) {
      ++clean;
      continue;
    }
    for (size_t k = 0; k < noise.size(); ++k) noise[k] -= speech[k];
    const double ratio = decibels(power(speech) / power(noise));
    least = std::min(least, ratio);
    most = std::max(most, ratio);
  }
  EXPECT_NEAR(clean, 100, 35);  // 5 deviations of 7.1
  EXPECT_GE(least, 4.99);
  EXPECT_LE(most, 15.01);
  EXPECT_LT(least, 6);
  EXPECT_GT(most, 14);
}

TEST(AudioAugment, SilenceGetsNoNoise) {
  const std::vector<float> silence(100);
  EXPECT_EQ(AudioAugment({.noise_share = 1}, {tone(50)}).perturb(silence, {1, 2, 3}), silence);
  EXPECT_EQ(AudioAugment({.noise_share = 1}, {silence}).perturb(tone(100), {1, 2, 3}), tone(100));
}

TEST(AudioAugment, MasksAreWithinTheirBounds) {
  const AudioAugment augment({.frequency_masks = 1,
                              .frequency_width = 8,
                              .time_masks = 1,
                              .time_width = 20,
                              .time_share = 0.1});
  std::set<int64_t> frames, features;
  for (int64_t i = 0; i < 400; ++i) {
    const Masked mask = masked(augment, {1, 0, i}, 150, 40);
    frames.insert(mask.frames);
    features.insert(mask.features);
  }
  // 400 draws contain all 16 and all 9 widths
  EXPECT_EQ(frames.size(), 16u);
  EXPECT_EQ(*frames.rbegin(), 15);
  EXPECT_EQ(features.size(), 9u);
  EXPECT_EQ(*features.rbegin(), 8);
}

TEST(AudioAugment, MasksReachBothEnds) {
  const AudioAugment augment({.time_masks = 1, .time_width = 3});
  std::map<int64_t, int> zeros;
  for (int64_t i = 0; i < 300; ++i) {
    const Tensor features = ones(6, 2);
    augment.mask(features, {1, 0, i});
    for (int64_t t = 0; t < 6; ++t) zeros[t] += features.data<float>()[2 * t] == 0;
  }
  for (int64_t t = 0; t < 6; ++t) EXPECT_GT(zeros[t], 20) << t;
}

TEST(AudioAugment, MasksFitShortUtterances) {
  const AudioAugment augment({.frequency_masks = 3, .time_masks = 3});
  for (int64_t i = 0; i < 50; ++i) augment.mask(ones(1, 1), {1, 0, i});
}

TEST(AudioAugment, RefusesOptionsThatMakeNoSense) {
  EXPECT_EQ(error_of([] { AudioAugment({.speed_percent = 60}); }),
            "audio augmentation: speed_percent is 60, expected 0 to 50");
  EXPECT_EQ(error_of([] { AudioAugment({.time_masks = -1}); }),
            "audio augmentation: time_masks is -1, expected 0 to 1048576");
  EXPECT_EQ(error_of([] { AudioAugment({.noise_low_db = 20, .noise_high_db = 10}); }),
            "audio augmentation: noise_high_db is 10, expected 20 to 100");
  EXPECT_EQ(error_of([] { AudioAugment({.noise_share = 0.5}); }),
            "audio augmentation: noise_share is 0.5, but there is no noise");
  EXPECT_EQ(error_of([] { AudioAugment({}, {{}}); }), "audio augmentation: a noise has no samples");
  EXPECT_EQ(error_of([] {
              AudioAugment({}).mask(Tensor({2}, DType::f32), {1, 2, 3});
            }),
            "audio augmentation: features are (2) f32, expected (T, F) f32");
}

TEST(AudioAugment, KnowsWhatItPerturbs) {
  const std::vector<float> speech = tone(400), noise = tone(70, 0.1f);
  const AudioAugmentOptions all[] = {
      {}, {.speed_percent = 10}, {.gain_db = 3}, {.noise_share = 0.5}, {.frequency_masks = 2}};
  for (const AudioAugmentOptions& options : all) {
    const AudioAugment augment(options, {noise});
    for (int64_t utterance = 0; utterance < 50; ++utterance) {
      const SampleKey key{1, 2, utterance};
      EXPECT_EQ(augment.perturbs(key), augment.perturb(speech, key) != speech);
    }
  }
}

}  // namespace
}  // namespace wisp
