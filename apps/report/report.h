// Runs side by side, as a table for a terminal.
#pragma once

#include <span>
#include <string>

#include "apps/run/run_record.h"

namespace wisp {

/// One row per run, from its summary: accuracy, speed, bytes and milliseconds per step and worker;
/// then a line on each run's bottleneck. A run that has not ended has dashes.
std::string report_table(std::span<const RunRecord> runs);

}  // namespace wisp
