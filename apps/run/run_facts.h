// facts.json of a run directory: what its data and model say of themselves, so that what reads runs
// needs neither.
#pragma once

#include <string>
#include <vector>

#include "models/model.h"

namespace wisp {

class Prepared;

/// What tells a split's data from other data.
struct SplitFacts {
  std::string split;
  int64_t samples = 0;
  std::string digest;  // Examples::digest(), in hexadecimal digits

  /// "128 samples, 5f3c…"
  std::string str() const;
};

struct RunFacts {
  Facts facts;
  std::vector<Metric> metrics = {{.name = "accuracy", .percent = true}};  // without of_mean
  bool has_validation = false;
  std::vector<SplitFacts> data;  // of the splits that there are; none of an older run

  /// What a configuration says of a run, and the data if it is loaded.
  static RunFacts of(const Prepared& run);
  /// The first metric, by which runs are compared.
  const Metric& metric() const { return metrics.front(); }
  std::string json() const;
  /// Of a run directory; of one from before there was such a file, that it learned pictures. Throws
  /// Error if the file is damaged.
  static RunFacts read(const std::string& directory);
};

/// The weights tell the classes that `run` was trained on, in their order. Throws Error for data of
/// others.
void check_classes(const Facts& data, const Facts& trained, const std::string& run);

}  // namespace wisp
