#include "apps/report/page/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "apps/report/page/html_text.h"
#include "apps/report/page/scale.h"

namespace wisp {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kWidth = 400, kHeight = 260;
constexpr double kLeft = 40, kRight = 390, kTop = 12, kBottom = 216;
constexpr int kColours = 8;

struct Box {
  double left = std::numeric_limits<double>::infinity(), right = -left;
  double low = left, high = -left;

  void add(const Points& points) {
    for (const auto& [x, y] : points) {
      left = std::min(left, x);
      right = std::max(right, x);
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  bool empty() const { return left > right; }
};

Points drawable(const Points& points, bool log_x) {
  Points kept;
  for (const auto& [x, y] : points) {
    if (std::isfinite(x) && std::isfinite(y) && (!log_x || x > 0.0)) kept.emplace_back(x, y);
  }
  return kept;
}

void put_axes(std::string& svg, const LineChart& chart, const Scale& x, const Scale& y) {
  const auto out = std::back_inserter(svg);
  for (const double tick : y.ticks()) {
    fmt::format_to(out, R"(<line class="grid" x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}"/>)",
                   kLeft, kRight, y.at(tick));
    fmt::format_to(out, R"(<text x="{}" y="{:.1f}" class="end">{}</text>)", kLeft - 6,
                   y.at(tick) + 4, tick_text(tick));
  }
  for (const double tick : x.ticks()) {
    fmt::format_to(out, R"(<line class="tick" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)",
                   x.at(tick), kBottom, kBottom + 4);
    fmt::format_to(out, R"(<text x="{:.1f}" y="{}" class="mid">{}</text>)", x.at(tick),
                   kBottom + 17, tick_text(tick));
  }
  fmt::format_to(out, R"(<line class="axis-line" x1="{0}" x2="{1}" y1="{2}" y2="{2}"/>)", kLeft,
                 kRight, kBottom);
  fmt::format_to(out, R"(<text x="{}" y="{}" class="mid label">{}</text>)", (kLeft + kRight) / 2,
                 kHeight - 8, html_text(chart.x_label));
}

void put_curve(std::string& svg, const Curve& curve, const Points& points, const Scale& x,
               const Scale& y, bool dots) {
  const auto out = std::back_inserter(svg);
  const char* dashed = curve.colour >= kColours ? " dashed" : "";
  fmt::format_to(out, R"(<g class="curve s{}{}"><title>{}: {:.4g} at the end</title>)",
                 curve.colour % kColours, dashed, html_text(curve.name), points.back().second);
  svg += R"(<path d="M)";
  for (const auto& [px, py] : points) fmt::format_to(out, "{:.1f},{:.1f} ", x.at(px), y.at(py));
  svg += "\"/>";
  if (dots) {
    for (const auto& [px, py] : points)
      fmt::format_to(out, R"(<circle cx="{:.1f}" cy="{:.1f}" r="3"/>)", x.at(px), y.at(py));
  }
  svg += "</g>";
}

}  // namespace

std::vector<std::pair<double, double>> thinned(const Points& points, size_t most) {
  if (points.size() <= most) return points;
  const size_t spans = most / 2;
  Points kept;
  for (size_t s = 0; s < spans; ++s) {
    const auto first = points.begin() + static_cast<int64_t>(s * points.size() / spans);
    const auto end = points.begin() + static_cast<int64_t>((s + 1) * points.size() / spans);
    auto [low, high] = std::minmax_element(
        first, end, [](const auto& a, const auto& b) { return a.second < b.second; });
    if (low > high) std::swap(low, high);
    kept.push_back(*low);
    if (low != high) kept.push_back(*high);
  }
  return kept;
}

std::string to_svg(const LineChart& chart) {
  std::vector<Points> curves;
  Box box;
  for (const Curve& curve : chart.curves) {
    curves.push_back(thinned(drawable(curve.points, chart.log_x)));
    box.add(curves.back());
  }
  std::string svg = fmt::format(
      R"(<figure class="chart"><figcaption>{0} <span>{1}</span></figcaption>)"
      R"(<svg viewBox="0 0 {2} {3}" role="img" aria-label="{0} over {4}">)",
      html_text(chart.title), html_text(chart.y_label), kWidth, kHeight, html_text(chart.x_label));
  if (box.empty()) {
    svg += fmt::format(R"(<text x="{}" y="{}" class="mid">nothing recorded</text>)", kWidth / 2,
                       kHeight / 2);
  } else {
    const Scale x(chart.log_x ? box.left : std::min(box.left, 0.0), box.right, kLeft, kRight,
                  chart.log_x);
    const Scale y = Scale::rounded(box.low, box.high, kBottom, kTop);
    put_axes(svg, chart, x, y);
    for (size_t c = 0; c < curves.size(); ++c) {
      if (!curves[c].empty()) put_curve(svg, chart.curves[c], curves[c], x, y, chart.dots);
    }
  }
  return svg + "</svg></figure>\n";
}

}  // namespace wisp
