#include "data/photos/colour_jitter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>

#include "core/base/hash.h"
#include "tests/support/drawn_pictures.h"
#include "tests/support/error_of.h"

namespace wisp {
namespace {

// Written by scripts/check_images.py --table with Pillow 11.3.0 (ImageEnhance) for 17 x 23 of
// noise.
const struct {
  void (*change)(const Tensor&, float);
  float factor;
  uint64_t hash;
} kPillow[] = {
    {change_brightness, 0.0f, 0x0ed17632f04cdf6e}, {change_brightness, 0.6f, 0x70b0d269d8ccc16f},
    {change_brightness, 1.0f, 0x4d39276f584728ca}, {change_brightness, 1.37f, 0x31cb2debf853166a},
    {change_brightness, 3.0f, 0x29abb2ba8cec811a}, {change_contrast, 0.0f, 0x72eba5c75d50f6ee},
    {change_contrast, 0.6f, 0xb4de1724d6e7e56d},   {change_contrast, 1.0f, 0x4d39276f584728ca},
    {change_contrast, 1.37f, 0x7432b856fa3afb59},  {change_contrast, 3.0f, 0x766e072ffb06a56c},
    {change_saturation, 0.0f, 0x85abca9577f926c9}, {change_saturation, 0.6f, 0x255a6b3eb30fb5f2},
    {change_saturation, 1.0f, 0x4d39276f584728ca}, {change_saturation, 1.37f, 0x721400f6e5f59d27},
    {change_saturation, 3.0f, 0xa8909fdc1fb245e4},
};

TEST(ColourJitter, ChangesHavePillowsBits) {
  for (const auto& row : kPillow) {
    const Tensor image = noise_picture(17, 23);
    row.change(image, row.factor);
    EXPECT_EQ(hash_text(bytes_of(image)), row.hash) << &row - kPillow;
  }
}

Tensor pixel(int red, int green, int blue) {
  return drawn_picture(1, 1, [&](int64_t, int64_t, int64_t c) {
    return c == 0 ? red : c == 1 ? green : blue;
  });
}

TEST(ColourJitter, ChangesAsByHand) {
  const Tensor dark = pixel(100, 50, 25), full = pixel(200, 100, 50), grey = pixel(200, 100, 50);
  change_brightness(dark, 1.5f);
  EXPECT_EQ(bytes_of(dark), bytes_of(pixel(150, 75, 37)));
  change_saturation(full, 2.0f);
  EXPECT_EQ(bytes_of(full), bytes_of(pixel(255, 76, 0))) << "the luma is 124";
  change_contrast(grey, 0.0f);
  EXPECT_EQ(bytes_of(grey), bytes_of(pixel(124, 124, 124)));
}

TEST(ColourJitter, ZeroStrengthsChangeNothing) {
  const Tensor image = noise_picture(5, 6);
  jitter_colours(image, {}, {1, 2, 3});
  EXPECT_EQ(bytes_of(image), bytes_of(noise_picture(5, 6)));
}

uint64_t jittered(const SampleKey& key, const ColourJitter& strengths = {0.4, 0.4, 0.4}) {
  const Tensor image = noise_picture(5, 6);
  jitter_colours(image, strengths, key);
  return hash_text(bytes_of(image));
}

TEST(ColourJitter, IsKeyedBySeedEpochAndSample) {
  EXPECT_EQ(jittered({1, 2, 3}), jittered({1, 2, 3}));
  EXPECT_EQ(
      std::set({jittered({1, 2, 3}), jittered({2, 2, 3}), jittered({1, 3, 3}), jittered({1, 2, 4})})
          .size(),
      4u);
}

TEST(ColourJitter, FactorsAreUniformWithinTheirStrength) {
  double sum = 0, least = 2, most = 0;
  constexpr int kCount = 2000;
  for (int64_t sample = 0; sample < kCount; ++sample) {
    const Tensor image = pixel(100, 100, 100);
    jitter_colours(image, {.brightness = 0.4}, {1, 0, sample});
    const double factor = image.data<uint8_t>()[0] / 100.0;
    sum += factor;
    least = std::min(least, factor);
    most = std::max(most, factor);
  }
  EXPECT_NEAR(sum / kCount, 0.995, 0.02) << "of a deviation of 0.231 / sqrt(2000) = 0.005";
  EXPECT_NEAR(least, 0.6, 0.015) << "pixels are cut to whole numbers";
  EXPECT_NEAR(most, 1.4, 0.015);
}

/// The values of a dark and a bright pixel after changes so strong that all become 0 or 255.
std::string extremes(const ColourJitter& strengths, int64_t sample) {
  const Tensor image =
      drawn_picture(1, 2, [](int64_t, int64_t x, int64_t c) { return 10 + 50 * x + 10 * c; });
  jitter_colours(image, strengths, {1, 0, sample});
  return bytes_of(image);
}

// Brightness makes all white, contrast splits the pixels, saturation splits the channels: what
// comes first decides.
TEST(ColourJitter, EveryOrderOccurs) {
  constexpr double kMuch = 1e6;
  const std::string white(6, '\xff');
  std::map<std::string, int> orders;
  constexpr int kCount = 600;
  for (int64_t sample = 0; sample < kCount; ++sample) {
    std::string order;
    order += extremes({.brightness = kMuch, .contrast = kMuch}, sample) == white ? "bc " : "cb ";
    order += extremes({.brightness = kMuch, .saturation = kMuch}, sample) == white ? "bs " : "sb ";
    order += extremes({.contrast = kMuch, .saturation = kMuch}, sample)[3] == '\0' ? "sc" : "cs";
    ++orders[order];
  }
  EXPECT_EQ(orders.size(), 6u);
  for (const auto& [order, count] : orders)
    EXPECT_NEAR(count, 100, 40) << order << ": four deviations of 9.1";
}

TEST(ColourJitter, RefusesStrengthsAndTensorsThatAreNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of([] { check(ColourJitter{.contrast = -0.1}); }),
            "colour jitter: a strength is -0.1, expected 0 or more");
  EXPECT_EQ(error_of([&] { check(ColourJitter{.saturation = nan}); }),
            "colour jitter: a strength is nan, expected 0 or more");
  EXPECT_EQ(error_of([] {
              jitter_colours(Tensor({2, 2, 1}, DType::u8), {}, {});
            }),
            "colour jitter: the picture is (2, 2, 1) u8, expected (H, W, 3) u8");
}

TEST(LightingNoise, IsAlongThePrincipalComponents) {
  // the first component, much the largest, moves all channels alike
  double sum[3] = {}, squares[3] = {}, together = 0;
  constexpr int kCount = 4000;
  for (int64_t sample = 0; sample < kCount; ++sample) {
    const auto noise = lighting_noise(0.1, {1, 0, sample});
    for (size_t c = 0; c < 3; ++c) {
      sum[c] += noise[c];
      squares[c] += noise[c] * noise[c];
    }
    together += noise[0] * noise[2];
  }
  // variance: sum over components of (25.5 * eigenvalue * vector)^2; a sample variance of 4000 has
  // a deviation of 2.2 percent
  const double expected[3] = {10.028, 10.385, 10.590};
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(sum[c] / kCount, 0, 0.2) << c;
    EXPECT_NEAR(squares[c] / kCount / expected[c], 1, 0.08) << c;
  }
  EXPECT_NEAR(together / kCount / 10.075, 1, 0.08);
}

TEST(LightingNoise, IsKeyedAndZeroWithoutStrength) {
  EXPECT_EQ(lighting_noise(0.1, {1, 2, 3}), lighting_noise(0.1, {1, 2, 3}));
  EXPECT_NE(lighting_noise(0.1, {1, 2, 3}), lighting_noise(0.1, {1, 2, 4}));
  EXPECT_EQ(lighting_noise(0, {1, 2, 3}), (std::array<double, 3>{0, 0, 0}));
  EXPECT_EQ(error_of([] { lighting_noise(-1, {}); }),
            "lighting noise: the strength is -1, expected 0 or more");
}

}  // namespace
}  // namespace wisp
