// Where the time of a few traced steps went, a row per lane of each worker, as SVG.
#pragma once

#include <span>
#include <string>

#include "apps/run/run_record.h"

namespace wisp {

/// The middle two of the recorded steps, up to eight workers. What the compute thread does and what
/// it waits for share a row. Empty if nothing was recorded.
std::string lane_chart(std::span<const TracedSpan> spans);

}  // namespace wisp
