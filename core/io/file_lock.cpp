#include "core/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace wisp {

FileLock::FileLock(const std::string& path)
    : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
  WISP_CHECK(descriptor_ >= 0, path, ": cannot be opened: ", std::strerror(errno));
  if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(descriptor_);
  throw Error(path + ": is held by another process");
}

FileLock::~FileLock() { close(descriptor_); }

}  // namespace wisp
