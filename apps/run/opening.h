// The lines with which a run begins: what it trains, on what, where, and where that is written.
#pragma once

#include <string>

#include "apps/run/run_facts.h"
#include "apps/setup/prepared.h"

namespace wisp {

/// Model and parameters to train, data and samples, workers, device and method, and `directory`: a
/// line each, without the last newline. Of a run whose data is loaded.
std::string opening_text(const Prepared& run, const RunFacts& facts, const std::string& directory);

}  // namespace wisp
