#include "apps/table/table_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/markdown_cell.h"
#include "apps/report/figure_text.h"
#include "apps/report/page/html_page.h"
#include "apps/report/page/html_text.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

using Cells = std::vector<std::string>;

std::string signed_text(double value) { return fmt::format("{:+.2f}", value); }

std::string published_cell(const TableFile& table, const TableRow& row) {
  if (!row.published) return "-";
  std::string cell = fmt::format("{:.2f}", *row.published);
  if (row.spread) cell += fmt::format(" ± {:.2f}", *row.spread);
  const std::optional<double> dense = table.dense_row().published;
  if (dense && row.name != table.dense)
    cell += fmt::format(" ({})", signed_text(*row.published - *dense));
  return cell;
}

std::string score_cell(const RowFigures& figures, size_t wanted) {
  if (figures.runs == 0) return "not run";
  std::string cell = "diverged";
  if (figures.score) {
    cell = fmt::format("{:.2f}", figures.score->mean);
    if (figures.score->values > 1) cell += fmt::format(" ± {:.2f}", figures.deviation);
  }
  if (figures.diverged > 0)
    cell += fmt::format(" ({} of {} diverged)", figures.diverged, figures.runs);
  if (figures.runs < wanted) cell += fmt::format(", {} of {} seeds", figures.runs, wanted);
  return cell;
}

std::string change_cell(const RowFigures& figures) {
  if (!figures.change) return "-";
  const Estimate& change = *figures.change;
  if (change.values < 2) return signed_text(change.mean) + " (one pair)";
  std::string cell = fmt::format("{} ± {:.2f}", signed_text(change.mean), change.half);
  if (change.values < figures.runs) cell += fmt::format(" ({} pairs)", change.values);
  return cell;
}

std::string hours_text(double hours) {
  if (std::isnan(hours)) return "-";
  if (std::isinf(hours)) return "never";
  return seconds_text(3600.0 * hours);
}

std::string gbit_text(double gbit) {
  return gbit < 1.0 ? fmt::format("{:.0f} Mbit/s", 1000.0 * gbit)
                    : fmt::format("{:g} Gbit/s", gbit);
}

/// Programs and machines, with the runs of each. Rows of several do not compare by their means.
std::string origins_of(const TableFile& table, std::span<const TableResult> results) {
  std::vector<std::pair<std::string, Cells>> origins;  // in order of first appearance
  for (const TableResult& result : results) {
    if (!result.run.summary) continue;  // a run that diverged did not record what computed it
    auto found = std::find_if(origins.begin(), origins.end(),
                              [&](const auto& other) { return other.first == result.origin(); });
    if (found == origins.end()) found = origins.insert(found, {result.origin(), {}});
    found->second.push_back(table.run_name(result.row, result.seed));
  }
  if (origins.empty()) return "";
  if (origins.size() == 1) return "Program " + origins.front().first + ".";
  std::string text = "Only runs of the same program and machine are compared:";
  for (const auto& [origin, runs] : origins)
    text += fmt::format(" program {} ({});", origin, fmt::join(runs, " "));
  text.back() = '.';
  return text;
}

Cells remarks_of(const TableFile& table, const TableScale& scale,
                 std::span<const TableResult> results, std::span<const RowFigures> figures,
                 const Metric& metric) {
  Cells remarks{provenance_of(table, scale)};
  if (!results.empty()) {
    std::string score = fmt::format(
        "The score is the {} of the test set after the last epoch, mean ± sample standard "
        "deviation over seeds. The change from {} is that of runs with equal seed, program and "
        "machine, with Student's 95 % interval over the pairs.",
        metric.name, table.dense);
    Cells drawn;
    for (size_t r = 0; r < figures.size(); ++r) {
      if (figures[r].change && figures[r].change->by_units) drawn.push_back(table.rows[r].name);
    }
    if (!drawn.empty())
      score += fmt::format(
          " That of {} is the wider of this one and that of 10,000 draws of pairs and test "
          "speakers with replacement.",
          fmt::join(drawn, ", "));
    remarks.push_back(std::move(score));
    if (scale.target)
      remarks.push_back(fmt::format(
          "The time to {:g}{} of the {} is modelled: the steps that it took, each as long as the "
          "longer of compute, and a third of compute (forward) followed by encode, wire and "
          "decode. Compute, encode and decode are medians over the logged steps, of workers that "
          "shared this machine; latency is left out.",
          *scale.target, metric.percent ? " %" : "",
          results.front().run.facts.has_validation ? "validation split" : "test set"));
    if (const std::string origins = origins_of(table, results); !origins.empty())
      remarks.push_back(origins);
  }
  for (const TableRow& row : table.rows) {
    if (!row.remark.empty()) remarks.push_back(row.name + ": " + row.remark);
  }
  return remarks;
}

/// Width on a terminal; UTF-8's continuation bytes take none.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string markdown_row(const Cells& cells, const std::vector<size_t>& widths) {
  std::string row = "|";
  for (size_t c = 0; c < cells.size(); ++c)
    row += " " + cells[c] + std::string(widths[c] - width_of(cells[c]), ' ') + " |";
  return row + "\n";
}

}  // namespace

std::string provenance_of(const TableFile& table, const TableScale& scale) {
  const std::string text = fmt::format("Published: {}. Scale: {}.", table.source, scale.name);
  return scale.changes.empty() ? text : text + " " + scale.changes;
}

TableText text_of(const TableFile& table, const TableScale& scale,
                  std::span<const TableResult> results) {
  const Metric metric =
      results.empty() ? Metric{.name = "score"} : results.front().run.facts.metric();
  const std::string unit = metric.percent ? " (%)" : "";
  TableText text;
  text.title = table.title;
  text.headings = {"row",
                   "published",
                   metric.name + unit,
                   "change from " + table.dense,
                   "sent a step and worker",
                   "less than dense"};
  if (scale.target) {
    for (const double gbit : kTableGbits)
      text.headings.push_back(fmt::format("to {:g}{} at {}", *scale.target,
                                          metric.percent ? " %" : "", gbit_text(gbit)));
  }
  const std::vector<RowFigures> figures = figures_of(table, scale, results);
  for (size_t r = 0; r < table.rows.size(); ++r) {
    const RowFigures& own = figures[r];
    const bool ran = own.runs > 0, sized = ran && std::isfinite(own.bytes_sent);
    Cells cells{table.rows[r].name,
                published_cell(table, table.rows[r]),
                score_cell(own, table.seeds.size()),
                change_cell(own),
                sized ? bytes_text(own.bytes_sent) : "-",
                sized ? reduction_text(own.reduction, own.bytes_sent) : "-"};
    if (scale.target) {
      for (const double hours : own.hours_to_target) cells.push_back(ran ? hours_text(hours) : "-");
    }
    text.rows.push_back(std::move(cells));
  }
  text.remarks = remarks_of(table, scale, results, figures, metric);
  return text;
}

std::string to_markdown(const TableText& text) {
  std::vector<Cells> lines{text.headings};
  lines.insert(lines.end(), text.rows.begin(), text.rows.end());
  std::vector<size_t> widths(text.headings.size(), 3);
  for (Cells& line : lines) {
    for (size_t c = 0; c < line.size(); ++c) {
      line[c] = markdown_cell(line[c]);
      widths[c] = std::max(widths[c], width_of(line[c]));
    }
  }
  Cells rule;
  for (const size_t width : widths) rule.push_back(std::string(width, '-'));
  lines.insert(lines.begin() + 1, rule);
  std::string markdown;
  for (const Cells& line : lines) markdown += markdown_row(line, widths);
  for (const std::string& remark : text.remarks) markdown += "\n" + visible_lines(remark) + "\n";
  return markdown;
}

std::string to_html(const TableText& text, const std::string& plot) {
  const auto row = [](Cells cells, const char* tag) {
    for (std::string& cell : cells) cell = html_text(cell);
    return html_row(cells, tag);
  };
  std::string rows = row(text.headings, "th");
  for (const Cells& cells : text.rows) rows += row(cells, "td");
  const std::string title = html_text(text.title);
  std::string body = "<h1>" + title + "</h1>\n" + plot + html_table(rows);
  for (const std::string& remark : text.remarks)
    body += "<p class=\"soft\">" + html_text(remark) + "</p>\n";
  return html_page(title, body);
}

}  // namespace wisp
