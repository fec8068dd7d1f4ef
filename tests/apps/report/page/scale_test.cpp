#include "apps/report/page/scale.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

namespace wisp {
namespace {

TEST(Scale, PutsValuesBetweenTheEnds) {
  const Scale linear(0.0, 10.0, 100.0, 200.0, false);
  EXPECT_DOUBLE_EQ(linear.at(2.5), 125.0);
  const Scale log(1.0, 100.0, 0.0, 10.0, true);
  EXPECT_DOUBLE_EQ(log.at(10.0), 5.0);
}

TEST(Scale, TicksAreRound) {
  EXPECT_EQ(Scale(0.0, 780.0, 0.0, 1.0, false).ticks(),
            (std::vector<double>{0.0, 200.0, 400.0, 600.0}));
  EXPECT_EQ(Scale(0.5, 20000.0, 0.0, 1.0, true).ticks(),
            (std::vector<double>{1.0, 10.0, 100.0, 1000.0, 10000.0}));
  const std::vector<double> few = Scale(15.0, 120.0, 0.0, 1.0, true).ticks();
  EXPECT_EQ(few, (std::vector<double>{20.0, 50.0, 100.0}));
}

TEST(Scale, ANarrowLogarithmicRangeHasTicksToo) {
  EXPECT_EQ(Scale(1210.0, 1390.0, 0.0, 1.0, true).ticks(),
            (std::vector<double>{1250.0, 1300.0, 1350.0}));
}

TEST(Scale, RoundedEndsAtTicks) {
  const Scale scale = Scale::rounded(41.3, 63.8, 0.0, 1.0);
  EXPECT_DOUBLE_EQ(scale.at(40.0), 0.0);
  EXPECT_DOUBLE_EQ(scale.at(65.0), 1.0);
}

TEST(Scale, ARangeOfOneValueIsWidened) {
  for (const bool log : {false, true}) {
    const Scale scale(5.0, 5.0, 0.0, 1.0, log);
    EXPECT_GT(scale.at(5.0), 0.0);
    EXPECT_LT(scale.at(5.0), 1.0);
  }
  EXPECT_EQ(Scale(0.0, 0.0, 0.0, 1.0, false).at(0.0), 0.5);
}

/// Ends that are far apart, equal, next to each other, without bounds, or no numbers.
TEST(Scale, OfAnyTwoNumbersHasAFewTicks) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  std::vector<double> ends = {0.0,   5e-324, 1e-320, DBL_MIN, 1e-290, 1e-150, 1e-12,
                              0.1,   1.0,    2.375,  1e15,    9.1e15, 1e16,   1e22,
                              1e150, 1e300,  1e308,  DBL_MAX, inf,    nan};
  for (size_t i = 0, count = ends.size(); i < count; ++i) {
    ends.push_back(-ends[i]);
    ends.push_back(std::nextafter(ends[i], inf));
    ends.push_back(std::nextafter(ends[i], -inf));
    ends.push_back(ends[i] * (1.0 + 1e-12));
  }
  for (const double low : ends) {
    for (const double high : ends) {
      for (const bool log : {false, true}) {
        if (log && low <= 0.0) continue;
        for (const Scale& scale :
             {Scale(low, high, 0.0, 1.0, log), Scale::rounded(low, high, 0.0, 1.0)}) {
          const std::vector<double> ticks = scale.ticks();
          ASSERT_LE(std::ssize(ticks), Scale::kMostTicks) << low << " to " << high;
          ASSERT_GE(std::ssize(ticks), 1) << low << " to " << high;
          for (size_t t = 0; t < ticks.size(); ++t) {
            ASSERT_TRUE(std::isfinite(scale.at(ticks[t]))) << low << " to " << high;
            ASSERT_TRUE(t == 0 || ticks[t] > ticks[t - 1]) << low << " to " << high;
          }
          for (const double value : ends) ASSERT_LT(std::abs(scale.at(value)), 1e7);
        }
      }
    }
  }
}

TEST(Scale, OfValuesThatDifferInTheirLastBitIsThatOfOneValue) {
  const double value = 2.345678, next = std::nextafter(value, 3.0);
  const Scale scale = Scale::rounded(value, next, 0.0, 1.0);
  EXPECT_NEAR(scale.at(value), scale.at(next), 1e-6);
  EXPECT_GE(scale.ticks().size(), 3u);
}

TEST(TickText, IsShort) {
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(2000.0), "2000");
  EXPECT_EQ(tick_text(1.5e6), "1.5M");
  EXPECT_EQ(tick_text(5e10), "50G");
  EXPECT_EQ(tick_text(0.1 + 0.2), "0.3");
}

}  // namespace
}  // namespace wisp
