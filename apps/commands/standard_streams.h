// The standard streams of a process, as whoever started it left them.
#pragma once

namespace wisp {

/// Opens /dev/null for those of 0, 1 and 2 that are closed: otherwise the next file that is opened
/// takes the number, and what is printed goes into it. Before anything else is opened.
void open_closed_streams();
/// Throws Error unless all that was printed has reached stdout (a full disk), with the system's
/// words if it is this flush that fails.
void flush_output();

}  // namespace wisp
