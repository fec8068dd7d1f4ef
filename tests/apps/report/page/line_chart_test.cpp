#include "apps/report/page/line_chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

namespace wisp {
namespace {

using Points = std::vector<std::pair<double, double>>;

TEST(Thinned, KeepsTheLowestAndHighestOfEachSpan) {
  Points points;
  for (int i = 0; i < 1000; ++i) points.emplace_back(i, i % 2 == 0 ? 0.0 : 1.0);
  points[503].second = 9.0;
  points[777].second = -9.0;
  const Points kept = thinned(points, 20);
  EXPECT_EQ(kept.size(), 20u);
  EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
  EXPECT_EQ(std::count(kept.begin(), kept.end(), std::make_pair(503.0, 9.0)), 1);
  EXPECT_EQ(std::count(kept.begin(), kept.end(), std::make_pair(777.0, -9.0)), 1);
}

TEST(Thinned, LeavesFewPointsAlone) {
  const Points points = {{1.0, 2.0}, {2.0, 1.0}};
  EXPECT_EQ(thinned(points, 2), points);
}

TEST(LineChart, LeavesOutWhatHasNoPlace) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  LineChart chart{"loss", "bytes", "nats", true, true, {}};
  chart.curves = {{"a", 0, {{0.0, 5.0}, {10.0, nan}, {10.0, 1.0}, {100.0, 2.0}}}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_NE(svg.find("<path d=\"M40.0,216.0 390.0,12.0 \"/>"), std::string::npos) << svg;
}

TEST(LineChart, OfNothingSaysSo) {
  const LineChart chart{"loss", "steps", "nats", false, false, {{"a", 0, {}}}};
  EXPECT_NE(to_svg(chart).find("nothing recorded"), std::string::npos);
}

}  // namespace
}  // namespace wisp
