// The content of facts.json in a run directory: facts on the run's data and model, so that readers
// of a run need neither. Plain values.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace wisp {

class Prepared;

/// The identity of a split's data.
struct SplitFacts {
  std::string split;
  int64_t samples = 0;
  std::string digest;  // Examples::digest() in hexadecimal

  /// "128 samples, 5f3c…"
  std::string str() const;
};

struct RunFacts {
  Facts facts;
  std::vector<Metric> metrics = {{.name = "accuracy", .percent = true}};  // without of_mean
  bool has_validation = false;
  std::vector<SplitFacts> data;  // one per split; empty for an older run

  /// The facts of a configuration, with those of its data if it is loaded.
  static RunFacts of(const Prepared& run);
  /// The first metric, which comparisons of runs use.
  const Metric& metric() const { return metrics.front(); }
  std::string json() const;
  /// Reads a run directory; the default facts for an older run without the file. Throws Error if
  /// the file is damaged.
  static RunFacts read(const std::string& directory);
};

/// Throws Error unless the data has the classes that `run` was trained on, in their order.
void check_classes(const Facts& data, const Facts& trained, const std::string& run);

}  // namespace wisp
