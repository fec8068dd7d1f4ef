// The signals by which somebody asks a program to save and to stop. Any thread.
#pragma once

#include <csignal>
#include <vector>

namespace wisp {

/// Ctrl-C, SIGTERM, a closed terminal (unless that is ignored, as nohup has it), and the two that
/// batch systems send before a job's time is over.
inline std::vector<int> stopping_signals() {
  std::vector<int> signals = {SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
  struct sigaction hangup {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) signals.push_back(SIGHUP);
  return signals;
}

}  // namespace wisp
