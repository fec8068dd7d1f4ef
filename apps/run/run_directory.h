// The output directory of a run: resolved configuration and commit, metrics, trace, summary,
// checkpoints. Rank 0's process writes it, except each rank's own part of a checkpoint. One thread
// at a time.
#pragma once

#include <optional>
#include <string>

#include "apps/run/run_facts.h"
#include "apps/run/run_files.h"
#include "core/io/config.h"
#include "core/io/file_lock.h"

namespace wisp {

class RunDirectory {
 public:
  /// create a new run; overwrite an old one; resume an old one, or begin it if it has no
  /// checkpoint; read one; follow: leave checks to rank 0
  enum class Open { create, overwrite, resume, read, follow };

  /// Changes nothing on disk. Throws Error if the directory already holds a run (create), or holds
  /// none (read), and if it has files of a run's names that no run wrote. Processes without rank 0
  /// use follow: rank 0's process checks and makes the directory.
  RunDirectory(std::string path, Open how);
  /// Leaves the directory as it was found unless begin() was called.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  /// Makes the directory, and locks it against other processes while this object lives. Throws
  /// Error if it cannot be made, if another process trains in it, and as the constructor. Looks
  /// again whether a run is there, for held_run() and goes_on().
  void make();
  /// Call once something was computed that is to be kept, such as the first step. A run that goes
  /// on has not ended any more: its summary goes, or what says that it diverged. In any other case
  /// the files of the old run are removed; others' files stay. Throws Error. A second call does
  /// nothing.
  void begin();
  /// Writes commit.txt with the program's version, config.toml and facts.json. A run that goes on
  /// calls it with its first checkpoint, because these files describe those that are there.
  void write_identity(const Config& config, const RunFacts& facts) const;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  /// Whether the directory held a run.
  bool held_run() const { return held_run_; }
  /// Whether a run is resumed that has a checkpoint.
  bool goes_on() const { return goes_on_; }

 private:
  void look();
  void withdraw();

  std::string path_;
  Open how_;
  bool held_run_ = false, goes_on_ = false, begun_ = false;
  bool made_ = false, made_lock_ = false;  // by this process
  std::optional<FileLock> lock_;
};

}  // namespace wisp
