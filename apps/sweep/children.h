// Child processes. A signal that asks this process to stop is passed to them each time it comes,
// and they get SIGTERM if this process ends without a word (SIGKILL). Only one object exists at a
// time; it is used by one thread, which lives as long as they do, and made before other threads
// start.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace wisp {

class Children {
 public:
  /// With a `niceness` above 0, up to 19, children yield to other programs.
  explicit Children(int niceness = 0);
  /// Sends SIGTERM to children that still run, and waits until they have saved and ended.
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Starts a program (its path, then its arguments) and appends its output to the file `log`. Its
  /// own process group keeps a terminal's Ctrl-C from reaching it twice. `variable`, "NAME=VALUE"
  /// or empty, joins its environment. Throws Error if it cannot start.
  void start(size_t id, std::vector<std::string> command, const std::string& log,
             const std::string& variable = "");
  size_t running() const { return children_.size(); }

  struct Ended {
    size_t id = 0;
    int status = 0;       // exit status, or 128 + the signal that ended it
    bool killed = false;  // by a signal: it had no chance to say why

    /// "status 1"; "killed by signal 9, Killed, as where memory is full".
    std::string how() const;
  };
  /// Waits until a child has ended, and passes signals on meanwhile.
  Ended wait();
  /// The last signal received, after which no child should start; 0 if none.
  int signalled() const { return signalled_; }

 private:
  const int niceness_;
  sigset_t watched_{}, before_{};
  std::vector<std::pair<size_t, pid_t>> children_;
  int signalled_ = 0;
};

/// The last line of a log that is not empty, after its first `from` bytes.
std::string last_line(const std::string& log, int64_t from = 0);

}  // namespace wisp
