#include "apps/survey/survey_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/io/visible_text.h"

namespace wisp {
namespace {

constexpr size_t kMostClasses = 20;  // up to this many, all are shown
constexpr size_t kShownOfMany = 10;

struct Row {
  std::string label;
  std::vector<std::string> cells;  // one per split
};

using CellOf = std::function<std::string(const SplitSurvey&)>;

Row row_of(const DataSurvey& survey, std::string label, const CellOf& cell) {
  Row row{std::move(label), {}};
  for (const SplitSurvey& split : survey.splits) row.cells.push_back(cell(split));
  return row;
}

Row numbers_of(const DataSurvey& survey, std::string label, int64_t SplitSurvey::*number) {
  return row_of(survey, std::move(label),
                [&](const SplitSurvey& split) { return std::to_string(split.*number); });
}

bool any(const DataSurvey& survey, const std::function<bool(const SplitSurvey&)>& is) {
  return std::any_of(survey.splits.begin(), survey.splits.end(), is);
}

/// Extents such as "32 x 32 x 3", with "any" for a variable one.
std::string extents_of(const Shape& sample) {
  std::vector<std::string> extents;
  for (const int64_t extent : sample)
    extents.push_back(extent == 0 ? "any" : std::to_string(extent));
  return extents.empty() ? "one number" : fmt::format("{}", fmt::join(extents, " x "));
}

/// A class's name, or its number if it has none.
std::string class_name(const Facts& facts, size_t index) {
  return index < facts.names.size() ? visible_name(facts.names[index]) : std::to_string(index);
}

std::vector<Row> general_rows(const DataSurvey& survey) {
  std::vector<Row> rows = {numbers_of(survey, "samples", &SplitSurvey::samples)};
  const auto add_known = [&](std::string label, const CellOf& cell) {  // unless all are dashes
    Row row = row_of(survey, std::move(label), cell);
    if (std::ranges::count(row.cells, "-") < std::ssize(row.cells)) rows.push_back(std::move(row));
  };
  if (any(survey, [](const SplitSurvey& split) { return split.work != split.samples; }))
    rows.push_back(numbers_of(survey, survey.facts.work, &SplitSurvey::work));
  if (any(survey, [](const SplitSurvey& split) { return split.targets != split.work; }))
    rows.push_back(numbers_of(survey, "targets", &SplitSurvey::targets));
  rows.push_back(numbers_of(survey, "steps of an epoch", &SplitSurvey::steps));
  add_known("lengths: least, median, most", [](const SplitSurvey& split) {
    const auto& lengths = split.lengths;
    return lengths ? fmt::format("{}, {}, {}", lengths->least, lengths->median, lengths->most)
                   : "-";
  });
  for (size_t i = 0; i < survey.facts.inputs.size(); ++i)
    add_known(survey.facts.inputs[i].name + ": mean, deviation", [i](const SplitSurvey& split) {
      const auto moments = i < split.inputs.size() ? split.inputs[i] : std::nullopt;
      return moments ? fmt::format("{:.3f}, {:.3f}", moments->mean, moments->deviation) : "-";
    });
  add_known("mixing of an epoch", [](const SplitSurvey& split) {
    return split.mixing ? fmt::format("{:.3f}", *split.mixing) : "-";
  });
  rows.push_back(numbers_of(survey, "damaged", &SplitSurvey::damaged));
  if (any(survey, [](const SplitSurvey& split) { return split.outside > 0; }))
    rows.push_back(numbers_of(survey, "targets that are no class", &SplitSurvey::outside));
  return rows;
}

std::vector<Row> class_rows(const DataSurvey& survey) {
  std::vector<size_t> order(static_cast<size_t>(survey.facts.classes));
  std::iota(order.begin(), order.end(), 0);
  const bool many = order.size() > kMostClasses;
  if (many && !survey.splits.empty()) {
    const std::vector<int64_t>& first = survey.splits[0].classes;
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return first[a] > first[b]; });
  }
  const size_t shown = many ? kShownOfMany : order.size();
  std::vector<Row> rows;
  for (size_t i = 0; i < shown; ++i)
    rows.push_back(
        row_of(survey, class_name(survey.facts, order[i]),
               [&](const SplitSurvey& split) { return std::to_string(split.classes[order[i]]); }));
  if (!many) return rows;
  const std::string others = fmt::format("the {} others", order.size() - shown);
  rows.push_back(row_of(survey, others, [&](const SplitSurvey& split) {
    int64_t sum = 0;
    for (size_t i = shown; i < order.size(); ++i) sum += split.classes[order[i]];
    return std::to_string(sum);
  }));
  rows.push_back(row_of(survey, "classes without a target", [](const SplitSurvey& split) {
    return std::to_string(std::count(split.classes.begin(), split.classes.end(), 0));
  }));
  return rows;
}

std::string text_of(const std::vector<Row>& rows) {
  size_t label = 0, cell = 0;
  for (const Row& row : rows) {
    label = std::max(label, row.label.size());
    for (const std::string& text : row.cells) cell = std::max(cell, text.size());
  }
  std::string text;
  for (const Row& row : rows) {
    text += fmt::format("{:<{}}", row.label, row.cells.empty() ? 0 : label);
    for (const std::string& each : row.cells) text += fmt::format("  {:>{}}", each, cell);
    text += "\n";
  }
  return text;
}

nlohmann::ordered_json json_of(const SplitSurvey& split) {
  nlohmann::ordered_json json = {{"samples", split.samples}, {"work", split.work},
                                 {"steps", split.steps},     {"targets", split.targets},
                                 {"outside", split.outside}, {"classes", split.classes}};
  if (split.lengths)
    json["lengths"] = {{"least", split.lengths->least},
                       {"median", split.lengths->median},
                       {"most", split.lengths->most}};
  json["inputs"] = nlohmann::ordered_json::array();
  for (const std::optional<Moments>& moments : split.inputs) {
    nlohmann::ordered_json input = nlohmann::ordered_json::object();
    if (moments) input = {{"mean", moments->mean}, {"deviation", moments->deviation}};
    json["inputs"].push_back(std::move(input));
  }
  if (split.mixing) json["mixing"] = *split.mixing;
  json["damaged"] = split.damaged;
  json["damage"] = split.damage;
  return json;
}

}  // namespace

std::string survey_table(const DataSurvey& survey) {
  std::string text;
  for (const Feed& feed : survey.facts.inputs)
    text += fmt::format("{}: {} {}\n", feed.name, extents_of(feed.sample), name_of(feed.dtype));
  text += fmt::format("{} classes; train.batch is {}\n\n", survey.facts.classes, survey.batch);
  std::vector<Row> rows = {row_of(
      survey, "", [](const SplitSurvey& split) { return std::string(name_of(split.split)); })};
  for (Row& row : general_rows(survey)) rows.push_back(std::move(row));
  rows.push_back({"", {}});
  for (Row& row : class_rows(survey)) rows.push_back(std::move(row));
  text += text_of(rows);
  for (const SplitSurvey& split : survey.splits) {
    if (split.damaged == 0) continue;
    text += fmt::format("\ndamaged in {}, {} of {}:\n", name_of(split.split), split.damage.size(),
                        split.damaged);
    for (const std::string& damage : split.damage) text += visible(damage) + "\n";
  }
  if (!survey.notices.empty()) text += "\n";
  for (const std::string& notice : survey.notices) text += visible(notice) + "\n";
  return text;
}

std::string survey_json(const DataSurvey& survey) {
  nlohmann::ordered_json json = {{"inputs", nlohmann::ordered_json::array()}};
  for (const Feed& feed : survey.facts.inputs)
    json["inputs"].push_back(
        {{"name", feed.name}, {"sample", feed.sample}, {"dtype", name_of(feed.dtype)}});
  json["work"] = survey.facts.work;
  json["batch"] = survey.batch;
  json["names"] = survey.facts.names;
  json["splits"] = nlohmann::ordered_json::object();
  for (const SplitSurvey& split : survey.splits)
    json["splits"][name_of(split.split)] = json_of(split);
  json["notices"] = survey.notices;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace wisp
