// A queue of training runs, each in a process of its own, a few at a time. Called from one thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "apps/sweep/children.h"

namespace wisp {

struct QueuedRun {
  std::string name;                    // of its directory and its log; safe as a file name
  std::string config_path;             // of the config file
  std::vector<std::string> overrides;  // key=value
  std::string config;                  // resolved
};

struct QueueOptions {
  std::string program;              // program to call as `program train CONFIG …`
  std::string out;                  // run directories are OUT/NAME, outputs OUT/NAME.log
  std::vector<std::string> files;   // what ended() writes into OUT
  int jobs = 1;                     // runs at a time, which share the cores
  int niceness = 0;                 // of the runs, up to 19: they yield to other programs
  std::vector<std::string> places;  // keys that may differ from a run that OUT holds
  bool may_diverge = false;         // a run that diverges has ended well, and stays as it is
  bool one_program = false;         // a stopped run of another program starts anew
};

/// Whether nothing is left to do for the run in this directory: it has a summary of its present
/// configuration and steps, or diverged.
bool has_ended(const std::string& directory);

class RunQueue {
 public:
  /// Throws Error if OUT holds a run of the same name and another configuration.
  RunQueue(QueueOptions options, std::vector<QueuedRun> runs);

  /// Trains every run that OUT does not hold yet: an interrupted run resumes from its last
  /// checkpoint, a finished one is left alone. Calls ended() at the start and after each
  /// run. A failed run does not end the others. Signals that stop a run are passed to the runs, and
  /// no more are started. Prints progress on stdout. Returns the exit status: 0, 1 if runs failed,
  /// 128 + the signal. Throws Error if another queue uses OUT, and if one of `files` is there which
  /// no queue wrote.
  int run(const std::function<void()>& ended);

  const std::vector<QueuedRun>& runs() const { return runs_; }
  std::string directory(size_t index) const { return options_.out + "/" + runs_[index].name; }
  /// Whether a run has a summary, or diverged and may.
  bool has_ended(size_t index) const;
  size_t count_ended() const;

 private:
  void refuse_others() const;
  void refuse_another(size_t index) const;
  void start(Children& children, size_t index);
  std::string variable_of(const QueuedRun& run) const;
  void end(const Children::Ended& ended, bool stopped);
  void tell_failures() const;

  const QueueOptions options_;
  const std::vector<QueuedRun> runs_;
  std::vector<int64_t> log_begins_;  // by run: bytes of its log that earlier attempts wrote
  std::vector<Children::Ended> failures_;
};

}  // namespace wisp
