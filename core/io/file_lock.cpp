#include "core/io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"

namespace wisp {
namespace {

/// Whether a path still names the file of a descriptor.
bool names(const std::string& path, int descriptor) {
  struct stat there {
  }, open{};
  return stat(path.c_str(), &there) == 0 && fstat(descriptor, &open) == 0 &&
         there.st_ino == open.st_ino && there.st_dev == open.st_dev;
}

bool is_file(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

FileLock::FileLock(const std::string& path) {
  do {  // a holder may have removed the file since it was opened
    if (descriptor_ >= 0) close(descriptor_);
    descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
    WISP_CHECK(descriptor_ >= 0, path, ": cannot be opened: ", std::strerror(errno));
    if (!is_file(descriptor_)) {
      close(descriptor_);
      throw Error(path + ": it is no file, so nothing can be locked by it");
    }
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(descriptor_);
      throw Error(path + ": is held by another process");
    }
  } while (!names(path, descriptor_));
}

FileLock::~FileLock() { close(descriptor_); }

}  // namespace wisp
