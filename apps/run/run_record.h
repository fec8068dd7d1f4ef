// A run directory read back: what `wisp report`, `diff` and `sweep` look at. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/run_facts.h"
#include "apps/run/summary.h"

namespace wisp {

/// A step row of metrics.jsonl. A number that is null or not there is NaN.
struct StepRow {
  int64_t step = 0;
  double seconds = 0.0;             // of training, since the run began
  double bytes_sent_total = 0.0;    // by rank 0, since the run began
  double loss = 0.0, metric = 0.0;  // the first of its metrics
  double bytes_encoded = 0.0, bytes_sent = 0.0, bytes_received = 0.0;
};

/// An epoch row of metrics.jsonl.
struct EpochRow {
  int64_t step = 0;
  double seconds = 0.0, bytes_sent_total = 0.0;
  double train_loss = 0.0;
  double train_metric = 0.0, validation_metric = 0.0, test_metric = 0.0;  // the first of them
};

/// A span of trace.json.
struct TracedSpan {
  int worker = 0;
  std::string lane, name;
  double begin_us = 0.0, end_us = 0.0;
  int64_t step = 0, bytes = 0;
};

struct Metrics {
  std::vector<StepRow> steps;
  std::vector<EpochRow> epochs;
};

/// Rows of steps that a resumed run made again replace the older ones. A last line that was cut off
/// is left out. `metric` is the name of the one to read. Throws Error with file:line for anything
/// else that is no row.
Metrics read_metrics(const std::string& path, const std::string& metric = "accuracy");

struct RunRecord {
  std::string path;
  std::string name;                                         // the directory's
  std::string version;                                      // of the program, with its commit
  std::string date;                                         // of the last row, UTC
  std::vector<std::pair<std::string, std::string>> config;  // resolved: dotted key, TOML value
  RunFacts facts;
  Metrics metrics;
  std::optional<Summary> summary;  // of a run that has ended
  std::vector<TracedSpan> spans;

  /// The summary's value of the first metric on a split; NaN if there is none.
  double score(const std::string& split) const;
  /// The summary's; "not recorded" of a run that has not ended.
  std::string numerics() const { return summary ? summary->numerics : kNotRecorded; }
  /// Throws Error if `path` holds no run, or a file of it is damaged.
  static RunRecord read(const std::string& path);
};

bool any_validates(std::span<const RunRecord> runs);

/// A key whose values differ between runs.
struct ConfigDifference {
  std::string key;
  std::vector<std::optional<std::string>> values;  // one for each run; none: not a key of that run
};

/// In order of first appearance.
std::vector<ConfigDifference> config_differences(const std::vector<RunRecord>& runs);

}  // namespace wisp
