#include "apps/report/page/lane_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "apps/report/figure_text.h"
#include "apps/report/page/html_text.h"
#include "apps/report/page/scale.h"

namespace wisp {
namespace {

constexpr int kMostWorkers = 8;
constexpr double kWidth = 960, kLeft = 118, kRight = 948, kTop = 6, kRow = 15, kBar = 12, kGap = 9;
constexpr const char* kRows[] = {"compute", "encode", "wire", "decode"};
constexpr size_t kRowCount = std::size(kRows);

/// The row of a span; waits are in the compute thread's row.
size_t row_of(const TracedSpan& span) {
  const auto found = std::find(std::begin(kRows), std::end(kRows), span.lane);
  return found == std::end(kRows) ? 0 : static_cast<size_t>(found - std::begin(kRows));
}

/// The CSS class of a span.
std::string kind_of(const TracedSpan& span) {
  const bool named = span.lane == "compute" || span.name == "loader";
  return named ? span.name : span.lane;
}

/// The spans of the middle two steps.
std::vector<TracedSpan> middle_steps(std::span<const TracedSpan> spans) {
  std::set<int64_t> recorded;
  for (const TracedSpan& span : spans) recorded.insert(span.step);
  std::vector<int64_t> steps(recorded.begin(), recorded.end());
  const size_t first = steps.empty() ? 0 : (steps.size() - 1) / 2;
  std::vector<TracedSpan> kept;
  for (const TracedSpan& span : spans) {
    const bool in =
        span.step == steps[first] || (first + 1 < steps.size() && span.step == steps[first + 1]);
    if (in && span.worker < kMostWorkers) kept.push_back(span);
  }
  return kept;
}

}  // namespace

std::string lane_chart(std::span<const TracedSpan> all) {
  const std::vector<TracedSpan> spans = middle_steps(all);
  if (spans.empty()) return "";
  const double begin = std::ranges::min(spans, {}, &TracedSpan::begin_us).begin_us;
  const double end = std::ranges::max(spans, {}, &TracedSpan::end_us).end_us;
  const int64_t first = std::ranges::min(spans, {}, &TracedSpan::step).step;
  const int64_t last = std::ranges::max(spans, {}, &TracedSpan::step).step;
  const int workers = std::ranges::max(spans, {}, &TracedSpan::worker).worker + 1;
  const Scale x(0.0, std::max((end - begin) * 1e-3, 1e-6), kLeft, kRight, false);
  const auto top_of = [](int worker) { return kTop + worker * (kRowCount * kRow + kGap); };
  const double bottom = top_of(workers);
  std::string svg =
      fmt::format(R"(<div class="wide"><svg class="lanes" viewBox="0 0 {} {:.0f}" role="img" )"
                  R"(aria-label="lanes of steps {} to {}">)",
                  kWidth, bottom + 30, first, last);
  const auto out = std::back_inserter(svg);
  for (int worker = 0; worker < workers; ++worker) {
    fmt::format_to(out, R"(<text x="0" y="{:.0f}" class="label">worker {}</text>)",
                   top_of(worker) + kBar - 2, worker);
    for (size_t row = 0; row < kRowCount; ++row) {
      const double y = top_of(worker) + static_cast<double>(row) * kRow;
      fmt::format_to(out, R"(<text x="{}" y="{:.0f}" class="end">{}</text>)", kLeft - 6,
                     y + kBar - 2, kRows[row]);
      fmt::format_to(out, R"(<rect class="lane" x="{}" y="{}" width="{}" height="{}"/>)", kLeft, y,
                     kRight - kLeft, kBar);
    }
  }
  for (const TracedSpan& span : spans) {
    const double left = x.at((span.begin_us - begin) * 1e-3);
    const double right = x.at((span.end_us - begin) * 1e-3);
    const double y = top_of(span.worker) + static_cast<double>(row_of(span)) * kRow;
    const std::string bytes = span.bytes > 0
                                  ? ", " + bytes_text(static_cast<double>(span.bytes)) + " sent"
                                  : std::string();
    fmt::format_to(out,
                   R"(<rect class="k-{}" x="{:.1f}" y="{}" width="{:.1f}" height="{}">)"
                   R"(<title>{}: {:.2f} ms{}</title></rect>)",
                   html_text(kind_of(span)), left, y, std::max(right - left, 0.7), kBar,
                   html_text(span.name), (span.end_us - span.begin_us) * 1e-3, bytes);
  }
  for (const double tick : x.ticks()) {
    fmt::format_to(out, R"(<line class="tick" x1="{0:.1f}" x2="{0:.1f}" y1="{1}" y2="{2}"/>)",
                   x.at(tick), kTop, bottom - kGap + 4);
    fmt::format_to(out, R"(<text x="{:.1f}" y="{:.0f}" class="mid">{}</text>)", x.at(tick),
                   bottom + 8, tick_text(tick));
  }
  fmt::format_to(
      out, R"(<text x="{}" y="{:.0f}" class="mid label">milliseconds, steps {} and {}</text>)",
      (kLeft + kRight) / 2, bottom + 25, first, last);
  return svg + "</svg></div>\n";
}

}  // namespace wisp
