// The output directory of a run: resolved configuration and commit, metrics, trace, summary,
// checkpoints. Rank 0's process writes it, except each rank's own part of a checkpoint. One thread
// at a time.
#pragma once

#include <optional>
#include <string>

#include "apps/run/run_facts.h"
#include "core/io/config.h"
#include "core/io/file_lock.h"

namespace wisp {

/// The file of a run directory that says how the run diverged.
inline constexpr const char* kDivergedFile = "diverged.txt";

class RunDirectory {
 public:
  /// create a new run; overwrite an old one; resume or read one; follow: leave checks to rank 0
  enum class Open { create, overwrite, resume, follow };

  /// Changes nothing on disk. Throws Error if the directory already holds a run (create), or holds
  /// none (resume). Processes without rank 0 use follow: rank 0's process checks and makes the
  /// directory.
  RunDirectory(std::string path, Open how);
  /// Makes the directory, and removes the files of the old run in it (overwrite); other files stay.
  /// Locks it against other processes while this object lives. Throws Error if it cannot be made,
  /// or if another process trains in it.
  void make();

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  /// Writes config.toml, commit.txt with the program's version, and facts.json. Removes what says
  /// that the run diverged, since it begins or goes on.
  void write_identity(const Config& config, const RunFacts& facts) const;

 private:
  std::string path_;
  Open how_;
  std::optional<FileLock> lock_;
};

}  // namespace wisp
