// What a finished run did: summary.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/run/bottleneck.h"

namespace wisp {

/// What a run did, per step and worker where it says bytes or ms; summary.json holds the same.
/// Bytes are of all its steps; rates and times of the steps since it was resumed last.
struct Summary {
  double test_accuracy = 0.0;
  std::optional<double> validation_accuracy;  // if there is a validation split
  double images_per_s = 0.0;                  // over training, evaluation and checkpoints left out
  int64_t steps = 0;
  int64_t skipped = 0;
  double bytes_raw = 0.0, bytes_encoded = 0.0, bytes_sent = 0.0, bytes_received = 0.0;
  double reduction_encoded = 0.0;  // raw / encoded
  double reduction_sent = 0.0;     // what dense would send / sent
  StepTimes times;

  /// With the line that names the bottleneck.
  std::string json() const;
  /// Throws Error if the file is missing or lacks a key.
  static Summary from_json(const std::string& path);

 private:
  using Field = std::variant<double*, int64_t*, std::optional<double>*>;
  std::vector<std::pair<const char*, Field>> fields();
};

}  // namespace wisp
