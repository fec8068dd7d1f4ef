// The clock of spans, accounting and progress. Any thread.
#pragma once

namespace wisp {

/// Microseconds on the steady clock since the process started. Static initialisation sets the
/// start, or an earlier first call.
double now_us();

/// The time at which now_us() was 0, in microseconds on the system's clock. It aligns the times of
/// different processes.
double clock_origin_us();

}  // namespace wisp
