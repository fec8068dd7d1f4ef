#include "apps/report/page/scale.h"

#include <gtest/gtest.h>

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

TEST(TickText, IsShort) {
  EXPECT_EQ(tick_text(0.25), "0.25");
  EXPECT_EQ(tick_text(2000.0), "2000");
  EXPECT_EQ(tick_text(1.5e6), "1.5M");
  EXPECT_EQ(tick_text(5e10), "50G");
  EXPECT_EQ(tick_text(0.1 + 0.2), "0.3");
}

}  // namespace
}  // namespace wisp
