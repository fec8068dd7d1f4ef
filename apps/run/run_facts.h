// facts.json of a run directory: what its data and model say of themselves, so that what reads runs
// needs neither.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace wisp {

struct RunFacts {
  Facts facts;
  std::vector<Metric> metrics = {{.name = "accuracy", .percent = true}};  // without of_mean
  bool has_validation = false;

  /// The first metric, by which runs are compared.
  const Metric& metric() const { return metrics.front(); }
  std::string json() const;
  /// Throws Error if the file is missing or lacks a key.
  static RunFacts read(const std::string& path);
};

}  // namespace wisp
