// A chart of the time of a few traced steps, a row per lane of each worker, as SVG. Any thread.
#pragma once

#include <span>
#include <string>

#include "apps/run/run_record.h"

namespace wisp {

/// Shows the middle two of the recorded steps, for up to eight workers. Work and waits of the
/// compute thread share a row. Empty if nothing was recorded.
std::string lane_chart(std::span<const TracedSpan> spans);

}  // namespace wisp
