// The signals that ask a program to save and stop. Any thread.
#pragma once

#include <csignal>
#include <vector>

namespace wisp {

/// Ctrl-C, SIGTERM, SIGHUP of a closed terminal (unless ignored, as by nohup), and SIGUSR1 and
/// SIGUSR2, which batch systems send before a job's time is over.
inline std::vector<int> stopping_signals() {
  std::vector<int> signals = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) signals.push_back(SIGHUP);
  return signals;
}

}  // namespace wisp
