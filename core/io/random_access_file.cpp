#include "core/io/random_access_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/base/error.h"

namespace wisp {

RandomAccessFile::RandomAccessFile(std::string path) : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  WISP_CHECK(descriptor_ >= 0, path_, ": cannot be opened: ", std::strerror(errno));
  struct stat status {};
  if (fstat(descriptor_, &status) != 0) {
    const int reason = errno;
    close(descriptor_);
    throw Error(concat(path_, ": cannot be read: ", std::strerror(reason)));
  }
  bytes_ = status.st_size;
}

RandomAccessFile::~RandomAccessFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

RandomAccessFile::RandomAccessFile(RandomAccessFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_) {}

void RandomAccessFile::read(void* into, int64_t bytes, int64_t offset) const {
  auto* next = static_cast<std::byte*>(into);
  while (bytes > 0) {
    const ssize_t got = pread(descriptor_, next, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    WISP_CHECK(got >= 0, path_, ": cannot be read: ", std::strerror(errno));
    WISP_CHECK(got > 0, path_, ": ends at byte ", offset, ", ", bytes, " bytes early");
    next += got;
    bytes -= got;
    offset += got;
  }
}

}  // namespace wisp
