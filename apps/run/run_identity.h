// What tells a run's data from other data, and a resumed run from the one before: all processes
// must have the same data, and who resumes a run is told what is otherwise.
#pragma once

#include <string>
#include <vector>

#include "apps/run/run_directory.h"
#include "apps/run/run_facts.h"
#include "core/io/config.h"
#include "distributed/agreement.h"

namespace wisp {

/// Classes, the splits' samples, and the file that weights start from ("": none).
std::vector<NamedValue> data_of(const RunFacts& facts, const std::string& init);

/// What a resumed run has otherwise than before: "seed is 2, was 1".
struct Changes {
  /// Of what decides which samples a step takes.
  std::vector<std::string> of_samples;
  std::vector<std::string> other;
};

/// Throws Error if a run directory's files are damaged. What is not written there, it cannot tell.
Changes changes_since(const RunDirectory& before, const Config& config, const RunFacts& facts);

}  // namespace wisp
