#include "apps/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "apps/markdown_cell.h"
#include "apps/sweep/sample.h"
#include "core/io/json.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

using Row = std::vector<std::string>;

std::string csv_row(const Row& cells) {
  std::string row;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) row += ',';
    const bool plain = cell.find_first_of(",\"\r\n") == cell.npos;
    if (!plain) row += '"';
    for (const char c : cell) {
      if (c == '"') row += '"';
      row += c;
    }
    if (!plain) row += '"';
  }
  row += '\n';
  return row;
}

/// The names of all numbers in any summary, in the order of the summary with the most.
Row names_of(std::span<const SweepResult> results) {
  Row names;
  for (const SweepResult& result : results) {
    if (!result.summary) continue;
    Row own;
    const auto object = parse_json<nlohmann::ordered_json>(result.summary->json());
    for (const auto& [key, value] : object.items()) {
      if (value.is_number()) own.push_back(key);
    }
    if (own.size() > names.size()) names = own;
  }
  return names;
}

std::string mean_and_deviation(const std::vector<double>& values, int digits) {
  const double mean = mean_of(values);
  if (std::isnan(mean)) return "-";
  const std::string text = fmt::format("{:.{}f}", mean, digits);
  return values.size() < 2 ? text : text + fmt::format(" ± {:.{}f}", deviation_of(values), digits);
}

struct Column {
  std::string heading;
  std::function<double(const Summary&)> value;
  int digits;
  bool is_score = false;
};

/// `facts`: those of the runs.
std::vector<Column> columns_of(const RunFacts& facts, bool validates) {
  const auto score = [&metric = facts.metric()](const std::string& split) {
    return Column{fmt::format("{} {}{}", split, metric.name, metric.percent ? " (%)" : ""),
                  [scale = metric.scale(), key = split + "_" + metric.name](const Summary& s) {
                    return scale * s.score_or_nan(key);
                  },
                  2, true};
  };
  const auto reduction = [](const Summary& s) {
    return s.bytes_sent > 0.0 ? s.reduction_sent : NAN;
  };
  const auto wait = [](const Summary& s) { return s.times.wait_ms; };
  std::vector<Column> columns{score("test"),
                              {"sent a step and worker (bytes)", &Summary::bytes_sent, 0},
                              {"less than dense (x)", reduction, 1},
                              {facts.facts.work + "/s", &Summary::work_per_s, 0},
                              {"wait of a step (ms)", wait, 1}};
  if (validates) columns.insert(columns.begin() + 1, score("validation"));
  return columns;
}

std::string markdown_row(const Row& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + markdown_cell(cell) + " |";
  return row + "\n";
}

/// The programs and numerics of the runs, a line each with the number of runs. Rows may differ for
/// that reason alone.
std::string origins(std::span<const SweepResult> results) {
  std::vector<std::pair<std::string, size_t>> counts;  // in order of first appearance
  for (const SweepResult& result : results) {
    if (!result.summary) continue;  // a run that ended by divergence did not record it
    const std::string origin =
        fmt::format("program {}, computed with: {}", result.version, result.summary->numerics);
    auto found = std::ranges::find(counts, origin, &std::pair<std::string, size_t>::first);
    if (found == counts.end()) found = counts.insert(found, {origin, 0});
    ++found->second;
  }
  std::string text;
  for (const auto& [origin, runs] : counts)
    text += fmt::format("\n{} run{}: {}\n", runs, runs == 1 ? "" : "s", visible(origin));
  return text;
}

}  // namespace

std::string sweep_csv(std::span<const SweepAxis> axes, std::span<const SweepResult> results) {
  Row head{"run"};
  for (const SweepAxis& axis : axes) head.push_back(axis.key);
  head.insert(head.end(), {"version", "numerics"});
  const Row names = names_of(results);
  head.insert(head.end(), names.begin(), names.end());
  head.push_back("diverged");
  std::string text = csv_row(head);
  for (const SweepResult& result : results) {
    Row row{result.run.name};
    for (const auto& value : result.run.values) row.push_back(value.value_or(""));
    row.insert(row.end(), {result.version, result.summary ? result.summary->numerics : ""});
    const auto numbers =
        result.summary ? parse_json(result.summary->json()) : nlohmann::json::object();
    for (const std::string& name : names) {
      const bool there = numbers.contains(name) && numbers.at(name).is_number();
      row.push_back(there ? numbers.at(name).dump() : "");
    }
    row.push_back(result.diverged);
    text += csv_row(row);
  }
  return text;
}

std::string sweep_markdown(std::span<const SweepAxis> axes, std::span<const SweepResult> results) {
  std::vector<size_t> shown;
  Row headings;
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].key == "seed" || axes[a].values.size() == 1) continue;
    shown.push_back(a);
    headings.push_back(axes[a].key);
  }
  headings.push_back("n");
  const std::vector<Column> columns =
      columns_of(results.empty() ? RunFacts{} : results.front().facts,
                 std::ranges::any_of(results, &RunFacts::has_validation, &SweepResult::facts));
  for (const Column& column : columns) headings.push_back(column.heading);

  using Group = std::pair<Row, std::vector<const SweepResult*>>;
  std::vector<Group> groups;  // in order of first appearance
  for (const SweepResult& result : results) {
    Row key;
    for (const size_t a : shown) key.push_back(result.run.values[a].value_or("-"));
    auto group = groups.begin();
    while (group != groups.end() && group->first != key) ++group;
    if (group == groups.end()) group = groups.insert(group, {key, {}});
    group->second.push_back(&result);
  }

  std::string text = markdown_row(headings);
  text += markdown_row(Row(headings.size(), "---"));
  for (const auto& [key, runs] : groups) {
    Row cells = key;
    cells.push_back(std::to_string(runs.size()));
    for (const Column& column : columns) {
      std::vector<double> values;
      for (const SweepResult* run : runs) {
        if (run->healthy()) values.push_back(column.value(*run->summary));
      }
      const size_t diverged = runs.size() - values.size();
      std::string& cell = cells.emplace_back(mean_and_deviation(values, column.digits));
      if (!column.is_score || diverged == 0) continue;
      if (values.empty()) cell = "diverged";
      if (runs.size() > 1) cell += fmt::format(" ({} of {} diverged)", diverged, runs.size());
    }
    text += markdown_row(cells);
  }
  return text + origins(results);
}

}  // namespace wisp
