#include "data/speech/resample.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/support/error_of.h"

namespace wisp {
namespace {

std::vector<float> sine(double hertz, int64_t rate, int64_t count) {
  std::vector<float> samples;
  for (int64_t i = 0; i < count; ++i)
    samples.push_back(static_cast<float>(std::sin(
        2 * std::numbers::pi * hertz * static_cast<double>(i) / static_cast<double>(rate))));
  return samples;
}

/// The power, relative to a sine's, in dB. Leaves out both ends, where the filter sees zeros.
double decibels(const std::vector<float>& samples) {
  const size_t end = samples.size() / 4;
  double sum = 0;
  for (size_t i = end; i < samples.size() - end; ++i)
    sum += static_cast<double>(samples[i]) * static_cast<double>(samples[i]);
  return 10 * std::log10(2 * sum / static_cast<double>(samples.size() - 2 * end) + 1e-30);
}

struct Rates {
  int64_t from, to;
};
constexpr Rates kRates[] = {{48000, 16000}, {44100, 16000}, {8000, 16000}, {11025, 16000},
                            {16000, 8000},  {110, 100},     {90, 100}};

TEST(Resample, PassesWhatBothRatesCanHold) {
  for (const auto& [from, to] : kRates) {
    const double nyquist = static_cast<double>(std::min(from, to)) / 2;
    for (const double share : {0.01, 0.2, 0.5, 0.8, 0.9}) {
      const double hertz = share * nyquist;
      const std::vector<float> y = Resampler(from, to).resample(sine(hertz, from, 4000));
      EXPECT_NEAR(decibels(y), 0, 0.1) << from << " to " << to << " at " << share;
      // also in phase: away from the ends, y is the sine at the new rate
      const std::vector<float> expected = sine(hertz, to, std::ssize(y));
      for (size_t i = y.size() / 4; i < y.size() * 3 / 4; ++i)
        ASSERT_NEAR(y[i], expected[i], 0.002) << from << " to " << to << " at " << share;
    }
  }
}

TEST(Resample, StopsWhatTheLowerRateCannotHold) {
  for (const auto& [from, to] : kRates) {
    if (from < to) continue;
    const double nyquist = static_cast<double>(to) / 2;
    for (const double share : {1.0, 1.05, 1.09})
      EXPECT_LT(decibels(Resampler(from, to).resample(sine(share * nyquist, from, 4000))), -70)
          << from << " to " << to << " at " << share;
  }
}

TEST(Resample, LeavesNoImagesWhenTheRateRises) {
  const std::vector<float> y = Resampler(8000, 16000).resample(sine(3500, 8000, 4000));
  const std::vector<float> expected = sine(3500, 16000, 8000);
  std::vector<float> rest;
  for (size_t i = 0; i < y.size(); ++i) rest.push_back(y[i] - expected[i]);
  EXPECT_LT(decibels(rest), -70);
}

// Expected numbers by NumPy's sinc and i0 in f64, tap by tap, from the formula in the header.
TEST(Resample, EqualsTheFormula) {
  std::vector<float> x;
  for (int n = 0; n < 600; ++n)
    x.push_back(
        static_cast<float>(0.3 * std::sin(2 * std::numbers::pi * 440 * n / 16000) +
                           0.2 * std::sin(2 * std::numbers::pi * 1730.5 * n / 16000 + 0.7)));
  const struct {
    Rates rates;
    size_t length;
    float at_0, at_50, at_111, last;
  } kExpected[] = {{{16000, 8000}, 300, 0.123629f, -0.388517f, 0.322691f, -0.087825f},
                   {{8000, 16000}, 1200, 0.127632f, -0.46066f, 0.082138f, -0.030159f},
                   {{44100, 16000}, 218, 0.133342f, -0.269711f, 0.345862f, -0.080184f},
                   {{110, 100}, 546, 0.125613f, 0.050091f, 0.416228f, -0.030453f}};
  for (const auto& e : kExpected) {
    const Resampler resampler(e.rates.from, e.rates.to);
    const std::vector<float> y = resampler.resample(x);
    ASSERT_EQ(y.size(), e.length);
    EXPECT_EQ(resampler.length(600), std::ssize(y));
    const float tolerance = 2e-6f;  // sums of some hundred products in f32
    EXPECT_NEAR(y[0], e.at_0, tolerance);
    EXPECT_NEAR(y[50], e.at_50, tolerance);
    EXPECT_NEAR(y[111], e.at_111, tolerance);
    EXPECT_NEAR(y.back(), e.last, tolerance);
  }
}

TEST(Resample, EqualRatesChangeNothing) {
  const std::vector<float> x = sine(440, 16000, 100);
  EXPECT_EQ(Resampler(16000, 16000).resample(x), x);
}

TEST(Resample, AConstantStaysOne) {
  const std::vector<float> y = Resampler(44100, 16000).resample(std::vector<float>(2000, 0.5f));
  for (size_t i = 100; i < y.size() - 100; ++i) EXPECT_NEAR(y[i], 0.5f, 1e-6f);
}

TEST(Resample, TakesAnyLength) {
  for (const auto& [from, to] : kRates) {
    const Resampler resampler(from, to);
    for (const int64_t count : {0, 1, 2, 3, 7})
      EXPECT_EQ(std::ssize(resampler.resample(std::vector<float>(static_cast<size_t>(count)))),
                (count * to + from - 1) / from);
  }
}

TEST(Resample, RefusesRatesThatItCannotDo) {
  EXPECT_EQ(error_of([] { Resampler(0, 16000); }),
            "resample: from 0 to 16000 samples per second, expected rates of 1 or more");
  EXPECT_EQ(
      error_of([] { Resampler(4'000'000'007, 16000); }),
      "resample: from 4000000007 to 16000 samples per second takes too large a table of taps, "
      "expected rates with a larger common divisor");
}

}  // namespace
}  // namespace wisp
