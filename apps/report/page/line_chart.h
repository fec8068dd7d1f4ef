// A chart of several runs' curves, as SVG. Any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace wisp {

struct Curve {
  std::string name;
  int colour = 0;                                 // class s0 to s7 of the page, dashed beyond
  std::vector<std::pair<double, double>> points;  // in order of x
};

struct LineChart {
  std::string title;
  std::string x_label, y_label;
  bool log_x = false;
  bool dots = false;  // for few points, each with a meaning
  std::vector<Curve> curves;
};

/// Leaves out points that are not finite and, on a log axis, points that are not above 0.
std::string to_svg(const LineChart& chart);

constexpr size_t kMostPoints = 500;  // per curve as drawn

/// The points themselves if they are at most `most`; else the lowest and the highest of each of
/// most / 2 spans with equally many points.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points,
                                               size_t most = kMostPoints);

}  // namespace wisp
