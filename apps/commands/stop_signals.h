// Ctrl-C and SIGTERM: the first asks a run to stop, the second of its kind ends the program at
// once.
#pragma once

namespace wisp {

/// One at a time; at its end both signals act by default again.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The signal that came first, 0 if none did. Any thread.
  static int received();
};

}  // namespace wisp
