#include "apps/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/report/figure_text.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

using Row = std::vector<std::string>;

constexpr size_t kColumns = 14;
constexpr size_t kValidation = 2;  // column that is left out without validation splits

Row row_of(const RunRecord& run, const Heading& metric) {
  if (!run.summary) {
    Row row(kColumns, "-");
    row.front() = run.name;
    row[1] = score_text(run, "test", metric);
    return row;
  }
  const Summary& s = *run.summary;
  return {run.name,
          score_text(run, "test", metric),
          score_text(run, "validation", metric),
          fmt::format("{:.0f}", s.work_per_s),
          bytes_text(s.bytes_raw),
          bytes_text(s.bytes_encoded),
          bytes_text(s.bytes_sent),
          bytes_text(s.bytes_received),
          reduction_text(s.reduction_sent, s.bytes_sent),
          fmt::format("{:.1f}", s.times.compute_ms),
          fmt::format("{:.1f}", s.times.encode_ms),
          fmt::format("{:.1f}", s.times.wait_ms),
          fmt::format("{:.1f}", s.times.wire_ms),
          fmt::format("{:.1f}", s.times.decode_ms)};
}

Heading heading(std::span<const RunRecord> runs, const char* general,
                std::string (*name_of)(const RunRecord&)) {
  for (const RunRecord& run : runs) {
    if (name_of(run) != name_of(runs.front())) return {general, name_of, true};
  }
  return {runs.empty() ? general : name_of(runs.front()), name_of};
}

}  // namespace

std::string score_text(const RunRecord& run, const std::string& split, const Heading& metric) {
  const double score = run.score(split);
  const std::string text = metric.figure(run.facts.metric().text(score), run);
  if (run.diverged.empty()) return text;
  if (std::isfinite(score)) return text + " (diverged)";
  return split == "test" ? "diverged" : "-";
}

Heading metric_heading(std::span<const RunRecord> runs) {
  return heading(runs, "metric", [](const RunRecord& run) { return run.facts.metric().name; });
}

Heading speed_heading(std::span<const RunRecord> runs) {
  return heading(runs, "work/s", [](const RunRecord& run) { return run.facts.facts.work + "/s"; });
}

std::string report_table(std::span<const RunRecord> runs) {
  const Heading metric = metric_heading(runs);
  std::vector<Row> rows{
      {"", "test", "validation", "", "bytes of a step and worker", "", "", "", "",
       "milliseconds of a step", "", "", "", ""},
      {"run", metric.text, metric.text, speed_heading(runs).text, "raw", "encoded", "sent",
       "received", "reduction", "compute", "encode", "wait", "wire", "decode"}};
  for (const RunRecord& run : runs) rows.push_back(row_of(run, metric));
  if (!any_validates(runs)) {
    for (Row& row : rows) row.erase(row.begin() + kValidation);
  }
  for (Row& row : rows) std::ranges::transform(row, row.begin(), visible);
  std::vector<size_t> width(rows[1].size());
  for (size_t r = 1; r < rows.size(); ++r) {
    for (size_t c = 0; c < width.size(); ++c) width[c] = std::max(width[c], rows[r][c].size());
  }
  std::string table;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < width.size(); ++c) {
      const std::string& cell = rows[r][c];
      if (r == 0 && cell.size() > width[c]) {
        line += "  " + cell;  // a heading over several columns takes their width
        size_t room = width[c];
        while (room < cell.size()) room += 2 + width[++c];
        line.append(room - cell.size(), ' ');
      } else if (c == 0) {
        line += fmt::format("{:<{}}", cell, width[c]);
      } else {
        line += fmt::format("  {:>{}}", cell, width[c]);
      }
    }
    table += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (r == 1) table += std::string(line.size(), '-') + "\n";
  }
  table +=
      "reduction: what dense would send / sent. wait: the compute thread stands still for the "
      "exchange. wire: collectives "
      "in flight.\n";
  for (const RunRecord& run : runs) {
    if (!run.diverged.empty())
      table +=
          fmt::format("{:<{}}  diverged: {}\n", visible(run.name), width[0], visible(run.diverged));
    else if (run.summary)
      table += fmt::format("{:<{}}  {}\n", visible(run.name), width[0],
                           bottleneck_line(run.summary->times));
  }
  return table;
}

}  // namespace wisp
