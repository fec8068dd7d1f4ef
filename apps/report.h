// Runs side by side, as a table for a terminal.
#pragma once

#include <span>
#include <string>

namespace wisp {

/// One row per run directory, from its summary.json: accuracy, speed, bytes and milliseconds per
/// step and worker. Throws Error for a directory without a summary.
std::string report_table(std::span<const std::string> runs);

}  // namespace wisp
