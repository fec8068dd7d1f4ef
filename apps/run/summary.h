// The summary of a finished run, as in summary.json. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/bottleneck.h"

namespace wisp {

/// The numerics of a run whose program did not record them.
inline constexpr const char* kNotRecorded = "not recorded";

/// A part of the test set that intervals draw as a whole: a speaker's utterances. All units' sums
/// over all units' divisors are the test set's first metric.
struct TestUnit {
  std::string name;
  double sum = 0.0, divisor = 0.0;  // such as word edits and words
};

/// Results of a run; bytes and ms are per step and worker. Bytes in steps are of the whole run.
/// Rates, times, bytes_other and bytes_distance are of the part since the run was last resumed.
struct Summary {
  std::vector<std::pair<std::string, double>> scores;  // "test_accuracy" …: SPLIT_METRIC
  std::vector<TestUnit> test_units;  // empty unless every test sample names its speaker
  std::string work = "images";
  double work_per_s = 0.0;  // training alone, without evaluation; images_per_s …
  int64_t steps = 0;
  int64_t skipped = 0;
  double bytes_raw = 0.0, bytes_encoded = 0.0, bytes_sent = 0.0, bytes_received = 0.0;
  double bytes_other = 0.0;        // sent outside steps; NaN: an older program
  double bytes_distance = 0.0;     // the part sent to measure distances; NaN likewise
  double reduction_encoded = 0.0;  // raw / encoded
  double reduction_sent = 0.0;     // bytes of dense / bytes sent
  StepTimes times;
  /// All that the bits depend on beside program, configuration and seed: libraries, instruction
  /// set, threads, CPU. Covers all workers since the run was last resumed.
  std::string numerics = kNotRecorded;
  std::string diverged;  // why the figures are not those of a trained model; empty: they are
  std::string config;    // configuration_digest() of the run; empty: an older program

  /// Throws Error if there is no score of that name.
  double score(const std::string& name) const;
  /// NaN if there is no score of that name.
  double score_or_nan(const std::string& name) const;
  /// The JSON text, with a line on the bottleneck.
  std::string json() const;
  /// Throws Error if the file is missing or lacks a key.
  static Summary from_json(const std::string& path);
};

}  // namespace wisp
