#include "apps/report/page/line_chart.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <string>
#include <vector>

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

TEST(LineChart, OfLargeAndOfNearlyEqualValuesIsSmall) {
  const double next = std::nextafter(2.5, 3.0), huge = 1.7e308;
  for (const Points& points :
       {Points{{1.0, 2.5}, {2.0, next}}, Points{{-huge, huge}, {huge, -huge}},
        Points{{1e-320, 5e-324}, {1e308, 1e308}}}) {
    for (const bool log : {false, true}) {
      const std::string svg = to_svg({"loss", "steps", "nats", log, true, {{"a", 0, points}}});
      EXPECT_LT(svg.size(), 20'000u);
      EXPECT_EQ(svg.find("nan"), std::string::npos);
      EXPECT_EQ(svg.find("inf"), std::string::npos);
    }
  }
}

std::vector<std::string> found(const std::string& svg, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> all;
  for (std::sregex_iterator at(svg.begin(), svg.end(), regex), end; at != end; ++at)
    all.push_back((*at)[1]);
  return all;
}

/// Dashes make each of several equal curves visible along the whole line.
TEST(LineChart, EqualCurvesTakeTurns) {
  const Points points = {{0.0, 0.0}, {5.0, 1.0}, {10.0, 0.0}};
  LineChart chart{"loss", "steps", "nats", false, true, {}};
  chart.curves = {{"a", 0, points}, {"b", 1, points}, {"c", 2, points}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(found(svg, "(stroke-dasharray:[^\"]*)"),
            (std::vector<std::string>{"stroke-dasharray:6 12;stroke-dashoffset:-0",
                                      "stroke-dasharray:6 12;stroke-dashoffset:-6",
                                      "stroke-dasharray:6 12;stroke-dashoffset:-12"}));
  EXPECT_EQ(found(svg, "cx=\"40.0\"[^>]* r=\"([0-9.]*)\""),
            (std::vector<std::string>{"6", "4.5", "3"}));
}

TEST(LineChart, CurvesThatPartTakeTurnsWhereTheyAreEqual) {
  LineChart chart{"loss", "steps", "nats", false, true, {}};
  chart.curves = {{"a", 0, {{0.0, 0.0}, {5.0, 1.0}, {10.0, 0.0}}},
                  {"b", 1, {{0.0, 0.0}, {5.0, 1.0}, {10.0, 1.0}}}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(found(svg, "<path( style=\"[^\"]*\")? d=").size(), 4u);
  EXPECT_EQ(found(svg, "dasharray:6 6;[^\"]*\" d=\"(M[^\"]*)\""),
            (std::vector<std::string>{"M40.0,216.0 215.0,12.0 ", "M40.0,216.0 215.0,12.0 "}));
  EXPECT_EQ(found(svg, "cx=\"390.0\"[^>]* r=\"([0-9.]*)\""), (std::vector<std::string>{"3", "3"}));
}

/// A single point is a dot, and lies neither on an axis nor on the frame.
TEST(LineChart, ASinglePointStandsInTheMiddle) {
  for (const bool log : {false, true}) {
    for (const double x : {3.0, 1234.0}) {
      const LineChart chart{"loss", "steps", "nats", log, false, {{"a", 0, {{x, 0.5}}}}};
      const std::string svg = to_svg(chart);
      EXPECT_EQ(found(svg, "<circle cx=\"([0-9.]*)\""), std::vector<std::string>{"215.0"});
      EXPECT_EQ(found(svg, "<circle cx=\"[0-9.]*\" cy=\"([0-9.]*)\""),
                std::vector<std::string>{"114.0"});
      EXPECT_GE(found(svg, "(class=\"tick\")").size(), 3u) << svg;
    }
  }
}

TEST(LineChart, OfNothingSaysSo) {
  const LineChart chart{"loss", "steps", "nats", false, false, {{"a", 0, {}}}};
  EXPECT_NE(to_svg(chart).find("nothing recorded"), std::string::npos);
}

}  // namespace
}  // namespace wisp
