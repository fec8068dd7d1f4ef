#include "data/speech/spectrogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

/// Three tones and noise, by a formula that NumPy can compute too.
std::vector<float> tones(int64_t count) {
  constexpr double kTurn = 2 * std::numbers::pi / 16000;
  std::vector<float> samples;
  for (int64_t i = 0; i < count; ++i) {
    const auto n = static_cast<double>(i);
    const auto noise = static_cast<double>((i * 2654435761 & 0xffffffff) >> 8) / 16777216 - 0.5;
    samples.push_back(static_cast<float>(0.3 * std::sin(kTurn * 440 * n) +
                                         0.2 * std::sin(kTurn * 1730.5 * n + 0.7) +
                                         0.05 * std::sin(kTurn * 6100 * n) + 0.02 * noise));
  }
  return samples;
}

struct Expected {
  int64_t frame, feature;
  float value;
};

void expect_values(const Tensor& features, const std::vector<Expected>& expected) {
  for (const auto& [frame, feature, value] : expected)
    EXPECT_NEAR(features.data<float>()[frame * features.shape()[1] + feature], value, 1e-4f)
        << frame << ", " << feature;
}

// torch 2.15: f = log1p(stft(x, 320, 160, 320, hamming_window(320), return_complex=True).abs()),
// (f - f.mean()) / f.std()
TEST(Spectrogram, EqualsTorch) {
  const Tensor features = Spectrogram().compute(tones(4000));
  ASSERT_EQ(features.shape(), Shape({26, 161}));
  expect_values(features, {{0, 0, 2.761693f},
                           {0, 9, 2.700605f},
                           {1, 35, 4.953094f},
                           {7, 160, -0.338970f},
                           {12, 3, -0.047801f},
                           {12, 122, 2.681907f},
                           {20, 80, -0.336824f},
                           {25, 0, 2.395049f},
                           {25, 9, 0.491987f},
                           {25, 160, -0.107556f}});
}

TEST(Spectrogram, EqualsTorchAtEightKilohertz) {
  const Spectrogram spectrogram({.rate = 8000});
  EXPECT_EQ(spectrogram.features(), 81);
  const Tensor features = spectrogram.compute(tones(700));
  ASSERT_EQ(features.shape(), Shape({9, 81}));
  expect_values(features, {{0, 0, 2.528873f}, {4, 33, -0.43216f}, {8, 80, -0.406867f}});
}

TEST(Spectrogram, EqualsTorchWithAnOddWindow) {
  const Spectrogram spectrogram({.rate = 9000, .window_ms = 25});
  const Tensor features = spectrogram.compute(tones(1800));
  ASSERT_EQ(features.shape(), Shape({20, 113})) << "the last stride has no whole window";
  expect_values(
      features,
      {{0, 0, 2.547101f}, {7, 14, -0.287098f}, {19, 0, 0.733031f}, {19, 112, -0.361604f}});
  EXPECT_EQ(spectrogram.compute(tones(1801)).shape()[0], 21);
}

// Torchaudio's melscale_fbanks(161, 0, 8000, 40, 16000, None, "htk"), computed in NumPy.
TEST(Spectrogram, MelBandsEqualTorchaudio) {
  const Tensor features = Spectrogram({.mels = 40}).compute(tones(4000));
  ASSERT_EQ(features.shape(), Shape({26, 40}));
  expect_values(features, {{0, 0, 0.905417f},
                           {0, 39, 0.691062f},
                           {3, 5, -0.390312f},
                           {12, 17, -0.418533f},
                           {20, 30, -0.423673f},
                           {25, 39, 0.352398f}});
}

TEST(Spectrogram, HasMeanZeroAndDeviationOne) {
  const Tensor features = Spectrogram().compute(tones(1600));
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < features.numel(); ++i) {
    const double value = features.data<float>()[i];
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum, 0, 1e-3);  // 1771 values, each rounded to 6e-8 of itself
  EXPECT_NEAR(squares / static_cast<double>(features.numel() - 1), 1, 1e-6);
}

TEST(Spectrogram, CountsFramesBeforehand) {
  const Spectrogram spectrogram;
  for (const int64_t samples : {161, 319, 320, 321, 1000})
    EXPECT_EQ(spectrogram.compute(tones(samples)).shape(),
              Shape({spectrogram.frames(samples), spectrogram.features()}));
  EXPECT_EQ(spectrogram.frames(161), 2);
}

TEST(Spectrogram, SilenceIsZero) {
  const Tensor features = Spectrogram().compute(std::vector<float>(400));
  for (int64_t i = 0; i < features.numel(); ++i) ASSERT_EQ(features.data<float>()[i], 0);
}

TEST(Spectrogram, RefusesFewerSamplesThanItMirrors) {
  const Spectrogram spectrogram;
  EXPECT_EQ(spectrogram.least_samples(), 161);
  for (const size_t samples : {0, 1, 160})
    EXPECT_EQ(error_of([&] { spectrogram.compute(std::vector<float>(samples)); }),
              concat("spectrogram: ", samples, " samples, expected 161 or more"));
}

TEST(Spectrogram, RefusesOptionsThatMakeNoSense) {
  EXPECT_EQ(error_of([] { Spectrogram({.rate = 11025}); }),
            "spectrogram: a window of 20 ms at a rate of 11025 is no whole number of samples");
  EXPECT_EQ(error_of([] { Spectrogram({.window_ms = 0}); }),
            "spectrogram: a window of 0 ms at a rate of 16000, expected 1 to 1000 ms at 1 to "
            "1000000");
  EXPECT_EQ(error_of([] { Spectrogram({.stride_ms = 30}); }),
            "spectrogram: a window of 320 samples and a stride of 480, expected 2 or more, and a "
            "stride within it");
  EXPECT_EQ(error_of([] { Spectrogram({.mels = 200}); }),
            "spectrogram: 200 mel bands, expected 0 (all frequencies) to 161");
  EXPECT_EQ(error_of([] { Spectrogram({.mels = 80}); }),
            "spectrogram: of 80 mel bands, number 1 lies between two frequencies of a window of 20 "
            "ms, expected fewer bands or a longer window");
}

}  // namespace
}  // namespace wisp
