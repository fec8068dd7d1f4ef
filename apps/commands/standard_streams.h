// Checks of the process's standard streams: those that its parent closed, and output that was lost.
// Called from the main thread.
#pragma once

namespace wisp {

/// Opens /dev/null for each of 0, 1 and 2 that is closed; otherwise the next opened file would take
/// the number and receive output. Call it before anything else is opened.
void open_closed_streams();
/// Throws Error unless all output has reached stdout (a full disk), with the system's message if
/// this flush fails.
void flush_output();

}  // namespace wisp
