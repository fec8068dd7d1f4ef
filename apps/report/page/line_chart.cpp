#include "apps/report/page/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "apps/report/page/html_page.h"
#include "apps/report/page/html_text.h"
#include "apps/report/page/scale.h"

namespace wisp {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr double kWidth = 400, kHeight = 260;
constexpr double kLeft = 40, kRight = 390, kTop = 12, kBottom = 216;

Points drawable(Points points, bool log_x) {
  std::erase_if(points, [=](const auto& point) {
    const auto& [x, y] = point;
    return !std::isfinite(x) || !std::isfinite(y) || (log_x && x <= 0.0);
  });
  return points;
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

/// A position in the drawing, in tenths of a unit.
using Place = std::pair<int64_t, int64_t>;
using Places = std::vector<Place>;

Places places_of(const Points& points, const Scale& x, const Scale& y) {
  Places places;
  for (const auto& [px, py] : points)
    places.emplace_back(std::llround(10.0 * x.at(px)), std::llround(10.0 * y.at(py)));
  return places;
}

/// A line from place to place, or a dot, in whole units, as lines are wider than tenths.
std::pair<Place, Place> stroke(const Place& from, const Place& to) {
  return {{from.first / 10, from.second / 10}, {to.first / 10, to.second / 10}};
}

/// The curves that overlap in each stroke, in order of drawing.
using Overlaps = std::map<std::pair<Place, Place>, std::set<size_t>>;

Overlaps overlaps_of(const std::vector<Places>& curves) {
  Overlaps overlaps;
  for (size_t c = 0; c < curves.size(); ++c) {
    for (size_t i = 0; i < curves[c].size(); ++i) {
      overlaps[stroke(curves[c][i], curves[c][i])].insert(c);
      if (i > 0) overlaps[stroke(curves[c][i - 1], curves[c][i])].insert(c);
    }
  }
  return overlaps;
}

std::string text_of(const Place& place) {
  return fmt::format("{:.1f},{:.1f} ", 0.1 * static_cast<double>(place.first),
                     0.1 * static_cast<double>(place.second));
}

/// Draws a curve's lines; curves that overlap alternate in dashes.
void put_lines(std::string& svg, size_t curve, const Places& places, const Overlaps& overlaps) {
  constexpr size_t kDash = 6;
  for (size_t first = 0; first + 1 < places.size();) {
    const std::set<size_t>& upon = overlaps.at(stroke(places[first], places[first + 1]));
    std::string path = text_of(places[first]);
    size_t last = first;
    while (last + 1 < places.size() && overlaps.at(stroke(places[last], places[last + 1])) == upon)
      path += text_of(places[++last]);
    std::string style;
    if (upon.size() > 1) {
      const auto turn = std::distance(upon.begin(), upon.find(curve));
      style = fmt::format(R"( style="stroke-dasharray:{} {};stroke-dashoffset:-{}")", kDash,
                          kDash * (upon.size() - 1), kDash * static_cast<size_t>(turn));
    }
    svg += fmt::format(R"(<path{} d="M{}"/>)", style, path);
    first = last;
  }
}

/// Draws a curve's dots; dots that overlap are rings, of which the first one is the largest.
void put_dots(std::string& svg, size_t curve, const Places& places, const Overlaps& overlaps) {
  constexpr double kRadius = 3.0;
  for (const Place& place : places) {
    const std::set<size_t>& upon = overlaps.at(stroke(place, place));
    const auto above = std::distance(upon.find(curve), upon.end()) - 1;
    const double ring =
        above == 0 ? 0.0
                   : kRadius * static_cast<double>(above) / static_cast<double>(upon.size() - 1);
    svg += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="{:.3g}"/>)",
                       0.1 * static_cast<double>(place.first),
                       0.1 * static_cast<double>(place.second), kRadius + ring);
  }
}

void put_curves(std::string& svg, const LineChart& chart, const std::vector<Points>& points,
                const Scale& x, const Scale& y) {
  std::vector<Places> places;
  for (const Points& curve : points) places.push_back(places_of(curve, x, y));
  const Overlaps overlaps = overlaps_of(places);
  for (size_t c = 0; c < points.size(); ++c) {
    if (points[c].empty()) continue;
    const Curve& curve = chart.curves[c];
    svg += fmt::format(R"(<g class="curve s{}{}"><title>{}: {:.4g} at the end</title>)",
                       curve.colour % kRunColours, curve.colour >= kRunColours ? " dashed" : "",
                       html_text(curve.name), points[c].back().second);
    put_lines(svg, c, places[c], overlaps);
    if (chart.dots || places[c].size() == 1) put_dots(svg, c, places[c], overlaps);
    svg += "</g>";
  }
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
  Extremes xs, ys;
  for (const Curve& curve : chart.curves) {
    curves.push_back(thinned(drawable(curve.points, chart.log_x)));
    for (const auto& [x, y] : curves.back()) {
      xs.add(x);
      ys.add(y);
    }
  }
  std::string svg = fmt::format(
      R"(<figure class="chart"><figcaption>{0} <span>{1}</span></figcaption>)"
      R"(<svg viewBox="0 0 {2} {3}" role="img" aria-label="{0} over {4}">)",
      html_text(chart.title), html_text(chart.y_label), kWidth, kHeight, html_text(chart.x_label));
  if (xs.low > xs.high) {
    svg += fmt::format(R"(<text x="{}" y="{}" class="mid">nothing recorded</text>)", kWidth / 2,
                       kHeight / 2);
  } else {
    const bool narrow = xs.low == xs.high;  // puts the points in the middle
    const Scale x(chart.log_x ? xs.low : std::min(xs.low, 0.0),
                  narrow && !chart.log_x ? 2.0 * xs.high : xs.high, kLeft, kRight, chart.log_x);
    const Scale y = Scale::rounded(ys.low, ys.high, kBottom, kTop);
    put_axes(svg, chart, x, y);
    put_curves(svg, chart, curves, x, y);
  }
  return svg + "</svg></figure>\n";
}

}  // namespace wisp
