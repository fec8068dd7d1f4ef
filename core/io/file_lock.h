// One process at a time, by a lock on a file that the system gives back however the process ends.
#pragma once

#include <string>

namespace wisp {

class FileLock {
 public:
  /// Makes the file if there is none. Throws Error if another process holds it. Where the file
  /// system knows no locks, nothing is held.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace wisp
