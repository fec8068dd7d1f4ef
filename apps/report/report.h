// A comparison of runs as a table for a terminal. Any thread.
#pragma once

#include <span>
#include <string>

#include "apps/run/run_record.h"

namespace wisp {

/// One row per run, from its summary: accuracy, speed, bytes and milliseconds per step and worker;
/// then one line per run on its bottleneck. An unfinished run has dashes.
std::string report_table(std::span<const RunRecord> runs);

}  // namespace wisp
