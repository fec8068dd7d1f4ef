// The identity of a run: its data, by counts and digests, and what it was told. All processes of a
// run must have the same, and a run that is resumed says what it has otherwise.
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
