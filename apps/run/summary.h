// The summary of a finished run, summary.json.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/run/bottleneck.h"

namespace wisp {

/// Stands for the numerics of runs whose program did not write them.
inline constexpr const char* kNotRecorded = "not recorded";

/// What a run did, per step and worker where it says bytes or ms; summary.json holds the same.
/// Bytes are of all its steps; rates, times and other bytes of what was done since it was resumed
/// last.
struct Summary {
  std::vector<std::pair<std::string, double>> scores;  // "test_accuracy" …, of SPLIT_METRIC
  std::string work = "images";
  double work_per_s = 0.0;  // over training, evaluation and checkpoints left out; images_per_s …
  int64_t steps = 0;
  int64_t skipped = 0;
  double bytes_raw = 0.0, bytes_encoded = 0.0, bytes_sent = 0.0, bytes_received = 0.0;
  double bytes_other = 0.0;        // sent beside steps; NaN: not counted, by an older program
  double reduction_encoded = 0.0;  // raw / encoded
  double reduction_sent = 0.0;     // what dense would send / sent
  StepTimes times;
  /// What the bits depend on beside program, configuration and seed: libraries, instruction set,
  /// threads, CPU. Of the steps since it was resumed last, of all workers.
  std::string numerics = kNotRecorded;

  /// Throws Error if there is no such score.
  double score(const std::string& name) const;
  /// NaN if there is none.
  double score_or_nan(const std::string& name) const;
  /// With the line that names the bottleneck.
  std::string json() const;
  /// Throws Error if the file is missing or lacks a key.
  static Summary from_json(const std::string& path);

 private:
  using Field = std::variant<double*, int64_t*>;
  std::vector<std::pair<const char*, Field>> fields();
};

}  // namespace wisp
