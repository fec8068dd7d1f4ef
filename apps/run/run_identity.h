// The identity of a run: its data, by counts and digests, and its configuration. All processes of a
// run must agree on it. A resumed run reports what has changed. One thread.
#pragma once

#include <string>
#include <vector>

#include "apps/run/run_directory.h"
#include "apps/run/run_facts.h"
#include "core/io/config.h"
#include "distributed/agreement.h"

namespace wisp {

/// The classes, the splits' samples, and the file of initial weights ("": none), for comparison.
std::vector<NamedValue> data_of(const RunFacts& facts, const std::string& init);

/// The differences of a resumed run from before: "seed is 2, was 1".
struct Changes {
  /// Changes that affect which samples a step takes.
  std::vector<std::string> of_samples;
  std::vector<std::string> other;
  std::vector<std::string> of_workers;  // of their number
  std::vector<std::string> of_program;

  /// Whether configuration or data changed, the number of workers aside.
  bool of_run() const { return !of_samples.empty() || !other.empty(); }
  /// All changes, separated by semicolons.
  std::string str() const;
};

/// Compares with the files of the run directory; a fact that they lack is not compared. Throws
/// Error if a file is damaged.
Changes changes_since(const RunDirectory& before, const Config& config, const RunFacts& facts);

}  // namespace wisp
