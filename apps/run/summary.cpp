#include "apps/run/summary.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/io/json.h"

namespace wisp {
namespace {

using nlohmann::ordered_json;

constexpr const char* kPerSecond = "_per_s";
constexpr const char* kOther = "bytes_other";
constexpr const char* kDistance = "bytes_distance";
constexpr const char* kTestUnits = "units";
constexpr const char* kDiverged = "diverged";
constexpr const char* kConfig = "config";

bool is_score(const std::string& key) {
  return key.starts_with("test_") || key.starts_with("validation_") || key.starts_with("best_");
}

/// null stands for NaN.
double number_of(const ordered_json& value, const std::string& name) {
  return value.is_null() ? std::nan("") : json_as<double>(value, name);
}

std::vector<TestUnit> test_units_of(const ordered_json& object) {
  WISP_CHECK(object.is_object(), kTestUnits, " is ", object.dump(), ", expected an object");
  std::vector<TestUnit> units;
  for (const auto& [name, unit] : object.items()) {
    try {
      units.push_back({name, number_of(unit.at("sum"), name), number_of(unit.at("divisor"), name)});
    } catch (const std::exception&) {
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
  if (!diverged.empty()) object[kDiverged] = diverged;
  object[kConfig] = config;
  object["bottleneck"] = bottleneck_line(times);
  // names of folders need not be UTF-8
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Summary Summary::from_json(const std::string& path) {
  std::error_code ignored;  // reading the file reports it
  WISP_CHECK(std::filesystem::exists(path, ignored), "cannot read ", path,
             ": is its run finished?");
  return naming(path, [&] {
    // units may share a name where theirs were no UTF-8
    const auto object =
        parse_json<ordered_json>(read_whole_file(path, kMostJsonBytes),
                                 [](int depth, const std::string&) { return depth > 1; });
    WISP_CHECK(object.is_object(), "is no summary, but ", object.type_name());
    const auto number = [&](const std::string& key) {
      WISP_CHECK(object.contains(key), "there is no ", key);
      return number_of(object[key], key);
    };
    Summary summary;
    for (const auto& [key, value] : object.items()) {
      if (is_score(key)) summary.scores.emplace_back(key, number_of(value, key));
      if (key == kTestUnits) summary.test_units = test_units_of(value);
      if (!key.ends_with(kPerSecond)) continue;
      summary.work = key.substr(0, key.size() - std::strlen(kPerSecond));
      summary.work_per_s = number_of(value, key);
    }
    visit_numbers(summary, [&]<class Number>(const char* key, Number& value) {
      if constexpr (std::same_as<Number, double>) {
        value = number(key);
      } else {
        value = json_at<Number>(object, key);
      }
    });
    summary.numerics = json_or<std::string>(object, "numerics", kNotRecorded);
    summary.bytes_other = object.contains(kOther) ? number(kOther) : std::nan("");
    summary.bytes_distance = object.contains(kDistance) ? number(kDistance) : std::nan("");
    summary.diverged = json_or<std::string>(object, kDiverged, "");
    summary.config = json_or<std::string>(object, kConfig, "");
    return summary;
  });
}

}  // namespace wisp
