// A comparison of runs as one HTML page, for a browser without network or script. Any thread.
#pragma once

#include <string>
#include <vector>

#include "apps/run/run_record.h"

namespace wisp {

/// The page: figures, curves over steps, seconds and bytes, traffic, the time of a step, lanes of
/// traced steps, differences of the configurations, and the commands that repeat the runs. All text
/// of the runs is escaped. Unfinished runs are shown up to their last step.
std::string report_page(const std::vector<RunRecord>& runs);

}  // namespace wisp
