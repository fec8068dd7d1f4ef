#include "core/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/loops/parallel.h"

namespace wisp {
namespace {

struct Exponentials {
  const float* x;
  float* y;
  WISP_HD static float of(float x) { return exponential(x); }
  WISP_HD void operator()(int64_t i) const { y[i] = of(x[i]); }
};

struct Logarithms {
  const float* x;
  float* y;
  WISP_HD static float of(float x) { return logarithm(x); }
  WISP_HD void operator()(int64_t i) const { y[i] = of(x[i]); }
};

struct Tangents {
  const float* x;
  float* y;
  WISP_HD static float of(float x) { return tangent(x); }
  WISP_HD void operator()(int64_t i) const { y[i] = of(x[i]); }
};

struct Sigmoids {
  const float* x;
  float* y;
  WISP_HD static float of(float x) { return sigmoid(x); }
  WISP_HD void operator()(int64_t i) const { y[i] = of(x[i]); }
};

/// Floats of every sign and exponent, equally many of each, with NaN and infinity.
std::vector<float> floats() {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 4001)
    x.push_back(float_from_bits(static_cast<uint32_t>(bits)));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float special : {-0.0f, infinity, -infinity, 88.72283f, 88.72284f, -103.97f, -104.0f})
    x.push_back(special);
  return x;
}

/// The distance of `found` from `exact`, in units of the last place of `exact`.
double distance(float found, double exact) {
  const double largest = std::numeric_limits<float>::max();
  if (std::isinf(found) && exact > largest) return 0.0;
  const double smallest = std::numeric_limits<float>::denorm_min();
  const double unit =
      std::max(std::ldexp(1.0, std::ilogb(std::max(std::abs(exact), smallest)) - 23), smallest);
  return std::abs(std::min<double>(found, 2.0 * largest) - exact) / unit;
}

/// The kernel's largest distance from `exact`. Expects the same bits from a loop as from single
/// calls.
template <class Kernel>
double worst_distance(double (*exact)(double)) {
  const std::vector<float> x = floats();
  std::vector<float> y(x.size());
  parallel_for(Stream::immediate(), static_cast<int64_t>(x.size()), Kernel{x.data(), y.data()});
  double worst = 0.0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = exact(static_cast<double>(x[i]));
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(y[i])) << x[i];
      continue;
    }
    EXPECT_EQ(float_bits(y[i]), float_bits(Kernel::of(x[i]))) << x[i];
    worst = std::max(worst, distance(y[i], expected));
  }
  return worst;
}

TEST(Elementary, ExponentialIsNear) {
  EXPECT_LE(worst_distance<Exponentials>([](double x) { return std::exp(x); }), 1.0);
}

TEST(Elementary, LogarithmIsNear) {
  EXPECT_LE(worst_distance<Logarithms>([](double x) { return std::log(x); }), 1.0);
}

TEST(Elementary, TangentIsNear) {
  EXPECT_LE(worst_distance<Tangents>([](double x) { return std::tanh(x); }), 2.7);
}

TEST(Elementary, SigmoidIsNear) {
  const auto exact = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  EXPECT_LE(worst_distance<Sigmoids>(exact), 2.5);
}

TEST(Elementary, Ends) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exponential(infinity), infinity);
  EXPECT_EQ(exponential(89.0f), infinity);
  EXPECT_EQ(exponential(-infinity), 0.0f);
  EXPECT_EQ(exponential(0.0f), 1.0f);
  EXPECT_EQ(logarithm(infinity), infinity);
  EXPECT_EQ(logarithm(0.0f), -infinity);
  EXPECT_EQ(logarithm(-0.0f), -infinity);
  EXPECT_EQ(logarithm(1.0f), 0.0f);
  EXPECT_EQ(tangent(infinity), 1.0f);
  EXPECT_EQ(tangent(-infinity), -1.0f);
  EXPECT_TRUE(std::signbit(tangent(-0.0f)));
  EXPECT_EQ(tangent(1e-40f), 1e-40f);
  EXPECT_EQ(sigmoid(infinity), 1.0f);
  EXPECT_EQ(sigmoid(-infinity), 0.0f);
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
}

TEST(Elementary, DoublesAreTheLibrarys) {
  for (const double x : {-40.0, -0.5, 0.0, 2.0}) {
    EXPECT_EQ(exponential(x), std::exp(x));
    EXPECT_EQ(logarithm(x * x), std::log(x * x));
    EXPECT_EQ(tangent(x), std::tanh(x));
    EXPECT_NEAR(sigmoid(x), 1.0 / (1.0 + std::exp(-x)), 1e-15);
  }
}

}  // namespace
}  // namespace wisp
