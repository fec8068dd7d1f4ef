#include "apps/run/summary.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPerSecond = "_per_s";
constexpr const char* kOther = "bytes_other";
constexpr const char* kDistance = "bytes_distance";
constexpr const char* kTestUnits = "units";

bool is_score(const std::string& key) {
  return key.starts_with("test_") || key.starts_with("validation_") || key.starts_with("best_");
}

/// null stands for NaN.
double number_of(const ordered_json& value) {
  return value.is_null() ? std::nan("") : value.get<double>();
}

std::vector<TestUnit> test_units_of(const ordered_json& object) {
  WISP_CHECK(object.is_object(), kTestUnits, " is ", object.dump(), ", expected an object");
  std::vector<TestUnit> units;
  for (const auto& [name, unit] : object.items()) {
    try {
      units.push_back({name, number_of(unit.at("sum")), number_of(unit.at("divisor"))});
    } catch (const nlohmann::json::exception&) {
      throw Error(concat(kTestUnits, ".", name, " is ", unit.dump(),
                         R"(, expected {"sum": a number, "divisor": a number})"));
    }
  }
  return units;
}

/// Calls visit(name, number) for the numbers that every file has, in its order.
template <class AnySummary, class Visit>
void visit_numbers(AnySummary& summary, const Visit& visit) {
  visit("steps", summary.steps);
  visit("skipped", summary.skipped);
  visit("bytes_raw", summary.bytes_raw);
  visit("bytes_encoded", summary.bytes_encoded);
  visit("bytes_sent", summary.bytes_sent);
  visit("bytes_received", summary.bytes_received);
  visit("reduction_encoded", summary.reduction_encoded);
  visit("reduction_sent", summary.reduction_sent);
  for (const auto& [name, time] : kStepTimes) visit(name, summary.times.*time);
}

}  // namespace

double Summary::score_or_nan(const std::string& name) const {
  const auto found = std::ranges::find(scores, name, &std::pair<std::string, double>::first);
  return found == scores.end() ? std::nan("") : found->second;
}

double Summary::score(const std::string& name) const {
  const double value = score_or_nan(name);
  WISP_CHECK(!std::isnan(value), "the summary has no ", name);
  return value;
}

std::string Summary::json() const {
  ordered_json object;
  for (const auto& [key, value] : scores) object[key] = value;
  for (const auto& [name, sum, divisor] : test_units)
    object[kTestUnits][name] = {{"sum", sum}, {"divisor", divisor}};
  object[work + kPerSecond] = work_per_s;
  visit_numbers(*this, [&](const char* key, auto number) { object[key] = number; });
  object["numerics"] = numerics;
  object[kOther] = bytes_other;
  object[kDistance] = bytes_distance;
  object["bottleneck"] = bottleneck_line(times);
  // names of folders need not be UTF-8
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Summary Summary::from_json(const std::string& path) {
  std::ifstream file(path);
  WISP_CHECK(file, "cannot read ", path, ": is its run finished?");
  try {
    const auto object = ordered_json::parse(file);
    Summary summary;
    for (const auto& [key, value] : object.items()) {
      if (is_score(key)) summary.scores.emplace_back(key, number_of(value));
      if (key == kTestUnits)
        summary.test_units = naming(path, [&, &units = value] { return test_units_of(units); });
      if (!key.ends_with(kPerSecond)) continue;
      summary.work = key.substr(0, key.size() - std::strlen(kPerSecond));
      value.get_to(summary.work_per_s);
    }
    visit_numbers(summary, [&](const char* key, auto& number) { object.at(key).get_to(number); });
    summary.numerics = object.value("numerics", kNotRecorded);
    summary.bytes_other = object.value(kOther, std::nan(""));
    summary.bytes_distance = object.value(kDistance, std::nan(""));
    return summary;
  } catch (const nlohmann::json::exception& error) {
    throw Error(path + " is no summary: " + error.what());
  }
}

}  // namespace wisp
