// The one clock of spans, accounting and progress. Any thread.
#pragma once

namespace wisp {

/// Microseconds of the steady clock since the process started (since the first call, if static
/// initialisation is quicker).
double now_us();

}  // namespace wisp
