#include "apps/run/run_record.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>

#include "apps/run/run_files.h"
#include "apps/setup/shared_configuration.h"
#include "core/base/error.h"
#include "core/io/checkpoint_directory.h"
#include "core/io/config.h"
#include "core/io/input_file.h"
#include "core/io/json.h"
#include "core/io/toml_limits.h"

namespace wisp {
namespace {

using nlohmann::json;

double number(const json& row, const std::string& key) {
  const auto found = row.find(key);
  const bool there = found != row.end() && found->is_number();
  return there ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

StepRow step_row(const json& row, const std::string& metric) {
  StepRow step{
      json_at<int64_t>(row, "step"), number(row, "seconds"),       number(row, "bytes_sent_total"),
      number(row, "loss"),           number(row, metric),          number(row, "bytes_encoded"),
      number(row, "bytes_sent"),     number(row, "bytes_received")};
  for (const auto& [name, time] : kStepTimes) step.times.*time = number(row, name);
  return step;
}

EpochRow epoch_row(const json& row, const std::string& metric) {
  return {json_at<int64_t>(row, "step"), number(row, "seconds"), number(row, "bytes_sent_total"),
          number(row, "validation_" + metric), number(row, "test_" + metric)};
}

template <class Row>
void put(std::vector<Row>& rows, const Row& row) {
  while (!rows.empty() && rows.back().step >= row.step) rows.pop_back();
  rows.push_back(row);
}

void put_line(Metrics& metrics, std::string_view line, const std::string& metric) {
  const json row = parse_json(line);
  const auto type = json_at<std::string>(row, "type");
  if (type == "step") put(metrics.steps, step_row(row, metric));
  if (type == "epoch") put(metrics.epochs, epoch_row(row, metric));
}

/// The time of a file's last change, "2026-01-31 12:00 UTC"; empty without a file.
std::string date_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "";
  return fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(status.st_mtime));
}

/// A process or a thread.
using LaneKey = std::pair<int, int>;

TracedSpan span_of(const json& event, const std::map<LaneKey, std::string>& lanes) {
  const int process = json_at<int>(event, "pid"), thread = json_at<int>(event, "tid");
  const auto lane = lanes.find({process, thread});
  WISP_CHECK(lane != lanes.end(), "there is no name of thread ", thread, " in process ", process);
  WISP_CHECK(process >= 1, "pid is ", process, ", expected 1 or more");
  const auto begin = json_at<double>(event, "ts");
  const json& arguments = json_part(event, "args");
  return {process - 1,
          lane->second,
          json_at<std::string>(event, "name"),
          begin,
          begin + json_at<double>(event, "dur"),
          json_at<int64_t>(arguments, "step"),
          json_or(arguments, "bytes", int64_t{0})};
}

std::vector<TracedSpan> read_spans(const std::string& path) {
  if (!is_there(path)) return {};
  return naming(path + " is no trace", [&] {
    const json trace = parse_json(read_whole_file(path, kMostJsonBytes));
    const json& events = json_part(trace, "traceEvents");
    std::map<LaneKey, std::string> lanes;
    for (const json& event : events) {
      if (json_at<std::string>(event, "name") == "thread_name")
        lanes[{json_at<int>(event, "pid"), json_at<int>(event, "tid")}] =
            json_at<std::string>(json_part(event, "args"), "name");
    }
    std::vector<TracedSpan> spans;
    for (const json& event : events) {
      if (json_at<std::string>(event, "ph") == "X") spans.push_back(span_of(event, lanes));
    }
    return spans;
  });
}

bool holds_out(const std::vector<std::pair<std::string, std::string>>& config) {
  return std::ranges::any_of(
      config, [](const auto& key) { return key.first == "data.validation" && key.second != "0"; });
}

/// The first line of a short file; empty if there is no file.
std::string first_line(const std::string& path) {
  constexpr int64_t kMostBytes = 4096;
  if (!is_there(path)) return "";
  const std::string text = naming(path, [&] { return read_head(path, kMostBytes); });
  return text.substr(0, text.find('\n'));
}

}  // namespace

std::string digest_of_run(const std::string& directory) {
  const std::string path = directory + "/" + kConfigFile;
  if (!is_there(path)) return "";
  return configuration_digest(
      naming(path, [&] { return read_whole_file(path, kMostConfigBytes); }));
}

Metrics read_metrics(const std::string& path, const std::string& metric) {
  InputLines lines(path);
  Metrics metrics;
  while (const std::optional<std::string_view> line = lines.next()) {
    if (lines.cut_off()) break;
    try {
      put_line(metrics, *line, metric);
    } catch (const Error& error) {
      throw Error(concat(path, ":", lines.number(), ": no row of metrics: ", error.what()));
    }
  }
  return metrics;
}

std::optional<Summary> summary_of(const std::string& directory) {
  const std::string path = directory + "/" + kSummaryFile;
  if (!is_there(path)) return std::nullopt;
  const Summary summary = Summary::from_json(path);
  const std::vector<int64_t> steps = checkpoint_steps(directory + "/" + kCheckpointsFolder);
  if (!steps.empty() && steps.back() != summary.steps) return std::nullopt;
  if (!summary.config.empty() && summary.config != digest_of_run(directory)) return std::nullopt;
  return summary;
}

std::string divergence_of(const std::string& directory, const std::optional<Summary>& summary) {
  const std::string path = directory + "/" + kDivergedFile;
  if (summary) return summary->diverged;
  if (!is_there(path)) return "";
  const std::string line = first_line(path);
  return line.empty() ? "the loss was not finite" : line;
}

std::string version_of(const std::string& directory) {
  return first_line(directory + "/" + kCommitFile);
}

RunRecord RunRecord::read(const std::string& path) {
  const auto file = [&](const char* name) { return path + "/" + name; };
  WISP_CHECK(is_there(file(kConfigFile)), path, " holds no run (no config.toml)");
  RunRecord run;
  run.path = path;
  run.name = std::filesystem::weakly_canonical(path).filename().string();
  run.version = version_of(path);
  run.date = date_of(file("metrics.jsonl"));
  run.config = Config::load(file("config.toml"), {}).given_values();
  run.facts = RunFacts::read(path);
  if (holds_out(run.config)) run.facts.has_validation = true;  // for runs before facts.json existed
  run.metrics = read_metrics(file("metrics.jsonl"), run.facts.metric().name);
  run.summary = summary_of(path);
  run.diverged = divergence_of(path, run.summary);
  run.spans = read_spans(file("trace.json"));
  return run;
}

double RunRecord::score(const std::string& split) const {
  return summary ? summary->score_or_nan(split + "_" + facts.metric().name) : std::nan("");
}

bool any_validates(std::span<const RunRecord> runs) {
  return std::ranges::any_of(runs, [](const RunRecord& run) { return run.facts.has_validation; });
}

std::vector<ConfigDifference> config_differences(const std::vector<RunRecord>& runs) {
  std::vector<ConfigDifference> rows;
  for (size_t r = 0; r < runs.size(); ++r) {
    for (const auto& [key, value] : runs[r].config) {
      auto row = std::ranges::find(rows, key, &ConfigDifference::key);
      if (row == rows.end())
        row = rows.insert(row, {key, std::vector<std::optional<std::string>>(runs.size())});
      row->values[r] = value;
    }
  }
  std::erase_if(rows, [](const ConfigDifference& row) {
    return std::ranges::count(row.values, row.values.front()) == std::ssize(row.values);
  });
  return rows;
}

}  // namespace wisp
