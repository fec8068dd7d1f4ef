// Runs side by side as one page of HTML, for a browser without network or script.
#pragma once

#include <string>
#include <vector>

#include "apps/run/run_record.h"

namespace wisp {

/// Figures, curves over steps, seconds and bytes, bytes, the time of a step, lanes of traced steps,
/// what differs in the configurations, and how to make the runs again. All text of the runs is
/// escaped. Runs that have not ended are shown as far as they went.
std::string report_page(const std::vector<RunRecord>& runs);

}  // namespace wisp
