// A run directory as read by `wisp report`, `diff` and `sweep`. Plain values.
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

/// A step row of metrics.jsonl. A number that is null or missing is NaN.
struct StepRow {
  int64_t step = 0;
  double seconds = 0.0;             // training time since the run began
  double bytes_sent_total = 0.0;    // rank 0's, since the run began
  double loss = 0.0, metric = 0.0;  // metric: the run's first one
  double bytes_encoded = 0.0, bytes_sent = 0.0, bytes_received = 0.0;
  StepTimes times;  // of this step alone
};

/// An epoch row of metrics.jsonl.
struct EpochRow {
  int64_t step = 0;
  double seconds = 0.0, bytes_sent_total = 0.0;
  double validation_metric = 0.0, test_metric = 0.0;  // the first metric's
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

/// Reads metrics.jsonl. Where a resumed run repeated steps, the later rows count. A last line
/// without its end is left out. `metric` is the name of the metric to read. Throws Error with
/// file:line for anything else that is not a row.
Metrics read_metrics(const std::string& path, const std::string& metric = "accuracy");

struct RunRecord {
  std::string path;
  std::string name;                                         // name of the directory
  std::string version;                                      // version and commit of the program
  std::string date;                                         // UTC time of the last row
  std::vector<std::pair<std::string, std::string>> config;  // resolved: dotted key, TOML value
  RunFacts facts;
  Metrics metrics;
  std::optional<Summary> summary;  // empty until the run has finished
  std::string diverged;            // why the run's figures are none; empty: it has not diverged
  std::vector<TracedSpan> spans;

  /// The summary's first metric on a split; NaN if there is none.
  double score(const std::string& split) const;
  /// The summary's numerics; "not recorded" for an unfinished run.
  std::string numerics() const { return summary ? summary->numerics : kNotRecorded; }
  /// Throws Error if `path` holds no run, or a file of it is damaged.
  static RunRecord read(const std::string& path);
};

/// configuration_digest() of a run's config.toml, as its summary has it; empty without that file.
/// Throws Error.
std::string digest_of_run(const std::string& directory);
/// The summary of a run that has ended. Nothing without one, and for one of other steps than the
/// newest checkpoint or of another configuration than config.toml: the run went on since, or was
/// changed. Throws Error if a file is damaged.
std::optional<Summary> summary_of(const std::string& directory);
/// Why a run has diverged, by its summary or because it ended by that; empty if it has not.
std::string divergence_of(const std::string& directory, const std::optional<Summary>& summary);

/// Version and commit of the program that made the run in this directory.
std::string version_of(const std::string& directory);

bool any_validates(std::span<const RunRecord> runs);

/// A key with different values among runs.
struct ConfigDifference {
  std::string key;
  std::vector<std::optional<std::string>> values;  // one per run; none: the run lacks the key
};

/// The keys in order of first appearance.
std::vector<ConfigDifference> config_differences(const std::vector<RunRecord>& runs);

}  // namespace wisp
