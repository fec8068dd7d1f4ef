#include "apps/report/figure_text.h"

#include <gtest/gtest.h>

#include <limits>

namespace wisp {
namespace {

TEST(FigureText, ShowsBytesInTheirUnit) {
  EXPECT_EQ(bytes_text(12.0), "12 B");
  EXPECT_EQ(bytes_text(41800.0), "41.8 kB");
  EXPECT_EQ(bytes_text(1078888.0), "1.08 MB");
  EXPECT_EQ(bytes_text(3.5e9), "3.50 GB");
}

TEST(FigureText, ShowsNoReductionWhereNothingIsSent) {
  EXPECT_EQ(reduction_text(276.72, 1e6), "276.7x");
  EXPECT_EQ(reduction_text(1.0, 0.0), "-");
}

TEST(FigureText, ShowsSecondsMinutesAndHours) {
  EXPECT_EQ(seconds_text(3.25), "3.2 s");
  EXPECT_EQ(seconds_text(75.2), "1:15");
  EXPECT_EQ(seconds_text(7500.0), "2:05:00");
  EXPECT_EQ(seconds_text(3.6e9), "1000000:00:00");
  EXPECT_EQ(seconds_text(std::numeric_limits<double>::quiet_NaN()), "-");
}

}  // namespace
}  // namespace wisp
