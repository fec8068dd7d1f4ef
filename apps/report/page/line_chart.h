// Curves of several runs as SVG.
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
  bool dots = false;  // points are few, and mean something each
  std::vector<Curve> curves;
};

/// Points that are not finite, and on a log axis those not above 0, are left out.
std::string to_svg(const LineChart& chart);

constexpr size_t kMostPoints = 500;  // of a curve as drawn

/// Of more than `most` points, the lowest and the highest in each of most / 2 spans of equally
/// many.
std::vector<std::pair<double, double>> thinned(const std::vector<std::pair<double, double>>& points,
                                               size_t most = kMostPoints);

}  // namespace wisp
