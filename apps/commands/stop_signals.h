// The stopping_signals(): the first asks a run to stop; a second Ctrl-C or SIGTERM ends the program
// at once.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace wisp {

/// One at a time; at its end the signals act as before.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that came first, 0 if none did. Any thread.
  static int received();

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace wisp
