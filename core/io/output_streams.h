// The output of the program: nothing else writes to stdout and stderr.
// Names from files may be in any text: characters that a terminal would obey are printed as
// escapes. One thread at a time.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace wisp {

/// The reader of stdout has gone, as in `wisp methods | head -1`.
class ReaderGone : public Error {
 public:
  using Error::Error;
};

/// Prints what a command was asked for on stdout. Throws ReaderGone, or Error with the system's
/// message (a full disk) unless this and all text before has been written.
void write_out(std::string_view text);

/// Prints on stdout how work goes on that must not be lost. Never fails: where stdout cannot be
/// written, a notice says so once, and from then on what is written there is lost.
void write_progress(std::string_view text);

/// The same on any stream, with control characters as they are, for lines that are redrawn.
void redraw(std::FILE* stream, std::string_view text);

/// Prints "wisp: TEXT" on stderr. Further lines are indented, so no name in a text can look like a
/// notice of its own. Never fails.
void write_notice(std::string_view text);

/// Prints lines on how the program is called on stderr. Never fails.
void write_usage(std::string_view text);

}  // namespace wisp
