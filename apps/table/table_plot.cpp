#include "apps/table/table_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "apps/report/figure_text.h"
#include "apps/report/page/html_text.h"
#include "apps/report/page/scale.h"

namespace wisp {
namespace {

constexpr double kWidth = 880, kHeight = 460;
constexpr double kLeft = 60, kRight = kWidth - 20, kTop = 56, kBottom = kHeight - 60;
constexpr double kLetter = 6.6, kLineHeight = 13;  // upper bounds of a label's letters

struct Point {
  std::string name;
  double bytes, score, half;
};

struct Box {
  double left, top, right, bottom;

  double shared(const Box& other) const {
    return std::max(0.0, std::min(right, other.right) - std::max(left, other.left)) *
           std::max(0.0, std::min(bottom, other.bottom) - std::max(top, other.top));
  }
};

std::vector<Point> points_of(const TableFile& table, const std::vector<RowFigures>& figures,
                             double dense) {
  std::vector<Point> points;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const RowFigures& row = figures[r];
    if (row.change && row.bytes_sent > 0.0)
      points.push_back(
          {table.rows[r].name, row.bytes_sent, dense + row.change->mean, row.change->half});
  }
  return points;
}

/// Places labels beside their points, one after the other, where they cover least.
class Labels {
 public:
  void cover(const Box& box) { covered_.push_back(box); }
  /// The left end and the base line of a label for the point (x, y).
  std::pair<double, double> place(double x, double y, const std::string& text) {
    const double width = kLetter * static_cast<double>(text.size());
    constexpr std::array<std::pair<double, double>, 8> kSides = {
        {{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {-1, -1}, {1, 1}, {-1, 1}}};
    Box best{};
    double least = std::numeric_limits<double>::infinity();
    for (const double distance : {10.0, 20.0, 34.0}) {
      for (const auto& [dx, dy] : kSides) {
        const double middle = x + dx * (distance + width / 2), centre = y + dy * (distance + 2);
        const Box box{middle - width / 2, centre - kLineHeight / 2, middle + width / 2,
                      centre + kLineHeight / 2};
        const double cost = distance + cost_of(box);
        if (cost >= least) continue;
        least = cost;
        best = box;
      }
    }
    cover(best);
    return {best.left, best.bottom - 3};
  }

 private:
  double cost_of(const Box& box) const {
    const Box frame{kLeft, kTop, kRight, kBottom};
    const double area = (box.right - box.left) * (box.bottom - box.top);
    double cost = 20.0 * (area - box.shared(frame));
    for (const Box& other : covered_) cost += 10.0 * box.shared(other);
    return cost;
  }
  std::vector<Box> covered_;
};

std::string bytes_tick(double bytes) {
  if (bytes >= 1e6) return fmt::format("{:g} MB", 1e-6 * bytes);
  if (bytes >= 1e3) return fmt::format("{:g} kB", 1e-3 * bytes);
  return fmt::format("{:g} B", bytes);
}

/// The range of the scores, widened to their intervals, by its own length at most on each side: two
/// seeds may have intervals that dwarf all differences.
Extremes with_intervals(const std::vector<Point>& points, const Extremes& scores) {
  const auto [low, high] = scores;
  Extremes wide = scores;
  for (const Point& point : points) {
    if (!std::isfinite(point.half)) continue;
    wide.add(point.score - point.half);
    wide.add(point.score + point.half);
  }
  const double room = high > low ? high - low : std::numeric_limits<double>::infinity();
  return {std::max(wide.low, low - room), std::min(wide.high, high + room)};
}

void put_axes(std::string& svg, const Scale& x, const Scale& y, const std::string& score) {
  const auto out = std::back_inserter(svg);
  for (const double tick : x.ticks()) {
    fmt::format_to(out, R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}" stroke="#e6e6e6"/>)",
                   x.at(tick), kTop, kBottom);
    fmt::format_to(out, R"(<text x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x.at(tick),
                   kBottom + 18, bytes_tick(tick));
  }
  for (const double tick : y.ticks()) {
    fmt::format_to(out, R"(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" stroke="#e6e6e6"/>)",
                   kLeft, kRight, y.at(tick));
    fmt::format_to(out, R"(<text x="{}" y="{:.1f}" text-anchor="end">{}</text>)", kLeft - 8,
                   y.at(tick) + 4, tick_text(tick));
  }
  fmt::format_to(out, R"(<text x="{}" y="{}">{}</text>)", kLeft, kTop - 10, html_text(score));
  fmt::format_to(out,
                 R"(<text x="{}" y="{}" text-anchor="middle">bytes sent a step and worker</text>)",
                 (kLeft + kRight) / 2, kHeight - 18);
}

/// Intervals end at the frame of the axes.
void put_point(std::string& svg, const Point& point, const Scale& x, const Scale& y) {
  const auto out = std::back_inserter(svg);
  fmt::format_to(out, "<g><title>{}: {:.2f}", html_text(point.name), point.score);
  if (std::isfinite(point.half)) fmt::format_to(out, " ± {:.2f}", point.half);
  fmt::format_to(out, ", {}</title>", bytes_text(point.bytes));
  if (std::isfinite(point.half))
    fmt::format_to(
        out, R"(<line x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}" stroke="#3b6a8a"/>)",
        x.at(point.bytes), std::min(y.at(point.score - point.half), kBottom),
        std::max(y.at(point.score + point.half), kTop));
  fmt::format_to(out, R"(<circle cx="{:.1f}" cy="{:.1f}" r="4" fill="#3b6a8a"/></g>)",
                 x.at(point.bytes), y.at(point.score));
}

}  // namespace

std::string plot_of(const TableFile& table, const TableScale& scale,
                    std::span<const TableResult> results) {
  const std::vector<RowFigures> figures = figures_of(table, scale, results);
  const RowFigures& dense = figures[table.dense_index()];
  if (!dense.score) return "";
  const std::vector<Point> points = points_of(table, figures, dense.score->mean);
  if (points.empty()) return "";
  const Metric& metric = results.front().run.facts.metric();

  Extremes bytes{dense.bytes_sent, dense.bytes_sent}, scores{dense.score->mean, dense.score->mean};
  for (const Point& point : points) {
    bytes.add(point.bytes);
    scores.add(point.score);
  }
  const Extremes frame = with_intervals(points, scores);
  const Scale x(bytes.low / 1.5, bytes.high * 1.5, kLeft, kRight, true);
  const Scale y = Scale::rounded(frame.low, frame.high, kBottom, kTop);

  std::string svg = fmt::format(
      R"(<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" )"
      R"(font-family="sans-serif" font-size="12" fill="#222222">)"
      R"(<rect width="{0}" height="{1}" fill="white"/><text x="{2}" y="24" font-size="15">{3}</text>)",
      kWidth, kHeight, kLeft, html_text(table.title));
  put_axes(svg, x, y, fmt::format("test {}{}", metric.name, metric.percent ? ", %" : ""));
  Labels labels;
  const double level = y.at(dense.score->mean);
  svg += fmt::format(
      R"(<line x1="{0}" x2="{1}" y1="{2:.1f}" y2="{2:.1f}" stroke="#222222" stroke-dasharray="4 3"/>)",
      kLeft, kRight, level);
  const std::string words =
      fmt::format("{}: {:.2f}, {}", table.dense, dense.score->mean, bytes_text(dense.bytes_sent));
  svg +=
      fmt::format(R"(<text x="{}" y="{:.1f}">{}</text>)", kLeft + 8, level - 6, html_text(words));
  labels.cover({kLeft, level - 20, kLeft + 8 + kLetter * static_cast<double>(words.size()), level});
  labels.cover({kLeft, level - 1, kRight, level + 1});
  for (const Point& point : points) {
    const double px = x.at(point.bytes), py = y.at(point.score);
    labels.cover({px - 6, py - 6, px + 6, py + 6});
    put_point(svg, point, x, y);
  }
  for (const Point& point : points) {
    const auto [left, base] = labels.place(x.at(point.bytes), y.at(point.score), point.name);
    svg +=
        fmt::format(R"(<text x="{:.1f}" y="{:.1f}">{}</text>)", left, base, html_text(point.name));
  }
  return svg + "</svg>\n";
}

}  // namespace wisp
