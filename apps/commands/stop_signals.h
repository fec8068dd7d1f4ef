// A handler of stopping_signals(): the first signal asks a run to stop; a second Ctrl-C or SIGTERM
// ends the program at once. Made and destroyed by one thread.
#pragma once

#include <csignal>
#include <utility>
#include <vector>

namespace wisp {

/// At most one exists at a time. Its destructor restores the previous handlers.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first signal received; 0 if none. Any thread.
  static int received();

 private:
  std::vector<std::pair<int, struct sigaction>> before_;
};

}  // namespace wisp
