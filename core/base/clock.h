// The one clock of spans, accounting and progress. Any thread.
#pragma once

namespace wisp {

/// Microseconds of the steady clock since the process started (since the first call, if static
/// initialisation is quicker).
double now_us();

/// When now_us() was 0, in microseconds of the system's clock: brings times of different processes
/// together.
double clock_origin_us();

}  // namespace wisp
