// Programs started beside this one. A signal that asks this process to stop goes to them instead,
// once for each time it comes. One at a time in a process, from one thread, before others start.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace wisp {

class Children {
 public:
  Children();
  /// Kills those that still run.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Starts a program (its path, then its arguments) whose output is appended to the file `log`.
  /// It has a process group of its own, so that a terminal's Ctrl-C does not reach it twice. Throws
  /// Error.
  void start(size_t id, std::vector<std::string> command, const std::string& log);
  size_t running() const { return children_.size(); }

  struct Ended {
    size_t id = 0;
    int status = 0;  // exit status, or 128 + the signal that ended it
  };
  /// Waits until one of those that run has ended, handing on signals.
  Ended wait();
  /// The signal that came, 0 if none did: no more should be started.
  int signalled() const { return signalled_; }

 private:
  sigset_t watched_{}, before_{};
  std::vector<std::pair<size_t, pid_t>> children_;
  int signalled_ = 0;
};

}  // namespace wisp
