// A lock on a file, which admits one process at a time. The system releases it however the process
// ends. Its holder may remove the file. One thread at a time.
#pragma once

#include <string>

namespace wisp {

class FileLock {
 public:
  /// Creates the file if it does not exist. Throws Error if another process holds the lock. On a
  /// file system without locks, nothing is locked.
  explicit FileLock(const std::string& path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

}  // namespace wisp
