// The first lines of a run's output: model, data, workers and run directory. Any thread.
#pragma once

#include <string>

#include "apps/run/run_facts.h"
#include "apps/setup/prepared.h"

namespace wisp {

/// Returns one line each for model and parameters, data and samples, workers with device and
/// method, and `directory`, without the last newline. The run's data must be loaded.
std::string opening_text(const Prepared& run, const RunFacts& facts, const std::string& directory);

}  // namespace wisp
