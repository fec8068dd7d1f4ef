// Where a run leaves what it did: resolved configuration and commit, log of metrics, trace,
// summary, checkpoint. Written by rank 0's process, but for each rank's own part of a checkpoint.
#pragma once

#include <optional>
#include <string>

#include "core/io/config.h"
#include "core/io/file_lock.h"

namespace wisp {

class RunDirectory {
 public:
  enum class Open { create, overwrite, resume, follow };

  /// Changes nothing. Throws Error if the directory holds a run already (create), or holds none
  /// (resume). To follow is for the processes beside rank 0's, which checks and makes it.
  RunDirectory(std::string path, Open how);
  /// Makes the directory, without the files of the run that it held (overwrite); other files stay.
  /// Holds it against other processes as long as this object lives. Throws Error if it cannot be
  /// made, or if another process trains in it.
  void make();

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

  /// config.toml, and commit.txt with the program's version.
  void write_config(const Config& config) const;
  /// Writes `content` to a temporary name, then renames. Throws Error with the path (a full disk).
  void write(const std::string& name, const std::string& content) const;

 private:
  void remove_run() const;

  std::string path_;
  Open how_;
  std::optional<FileLock> lock_;
};

}  // namespace wisp
