#include "apps/sweep_table.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace wisp {
namespace {

using Row = std::vector<std::string>;

std::string csv_row(const Row& cells) {
  std::string row;
  for (const std::string& cell : cells) {
    if (&cell != &cells.front()) row += ',';
    const bool plain = cell.find_first_of(",\"\n") == cell.npos;
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

/// The numbers of a summary, with their names.
std::vector<std::pair<std::string, std::string>> numbers_of(const Summary& summary) {
  std::vector<std::pair<std::string, std::string>> numbers;
  const auto object = nlohmann::ordered_json::parse(summary.json());
  for (const auto& [key, value] : object.items()) {
    if (value.is_number()) numbers.emplace_back(key, value.dump());
  }
  return numbers;
}

std::string mean_and_deviation(const std::vector<double>& values, int digits) {
  double sum = 0.0;
  for (const double value : values) sum += value;
  const double n = static_cast<double>(values.size());
  const double mean = sum / n;
  std::string text = fmt::format("{:.{}f}", mean, digits);
  if (values.size() < 2) return text;
  double squares = 0.0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return text + fmt::format(" ± {:.{}f}", std::sqrt(squares / (n - 1.0)), digits);
}

struct Column {
  const char* heading;
  double (*value)(const Summary&);
  int digits;
};

constexpr Column kColumns[] = {
    {"test accuracy (%)", [](const Summary& s) { return 100.0 * s.test_accuracy; }, 2},
    {"sent a step and worker (bytes)", [](const Summary& s) { return s.bytes_sent; }, 0},
    {"less than dense (x)", [](const Summary& s) { return s.reduction_sent; }, 1},
    {"images/s", [](const Summary& s) { return s.images_per_s; }, 0},
    {"wait of a step (ms)", [](const Summary& s) { return s.times.wait_ms; }, 1}};

std::string markdown_row(const Row& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) {
    row += ' ';
    for (const char c : cell) {
      if (c == '|') row += '\\';
      row += c;
    }
    row += " |";
  }
  row += '\n';
  return row;
}

}  // namespace

std::string sweep_csv(std::span<const SweepAxis> axes, std::span<const SweepResult> results) {
  Row head{"run"};
  for (const SweepAxis& axis : axes) head.push_back(axis.key);
  head.push_back("version");
  for (const auto& [name, value] : numbers_of({})) head.push_back(name);
  std::string text = csv_row(head);
  for (const SweepResult& result : results) {
    Row row{result.run.name};
    for (const auto& value : result.run.values) row.push_back(value.value_or(""));
    row.push_back(result.version);
    for (const auto& [name, value] : numbers_of(result.summary)) row.push_back(value);
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
  for (const Column& column : kColumns) headings.push_back(column.heading);

  using Group = std::pair<Row, std::vector<const Summary*>>;
  std::vector<Group> groups;  // in order of first appearance
  for (const SweepResult& result : results) {
    Row key;
    for (const size_t a : shown) key.push_back(result.run.values[a].value_or("-"));
    auto group = groups.begin();
    while (group != groups.end() && group->first != key) ++group;
    if (group == groups.end()) group = groups.insert(group, {key, {}});
    group->second.push_back(&result.summary);
  }

  std::string text = markdown_row(headings);
  text += markdown_row(Row(headings.size(), "---"));
  for (const auto& [key, summaries] : groups) {
    Row cells = key;
    cells.push_back(std::to_string(summaries.size()));
    for (const Column& column : kColumns) {
      std::vector<double> values;
      for (const Summary* summary : summaries) values.push_back(column.value(*summary));
      cells.push_back(mean_and_deviation(values, column.digits));
    }
    text += markdown_row(cells);
  }
  return text;
}

}  // namespace wisp
