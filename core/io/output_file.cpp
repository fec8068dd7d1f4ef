#include "core/io/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "core/io/descriptor.h"

namespace wisp {
namespace {

constexpr const char* kUnfinished = ".wisp-";
constexpr const char* kTemporary = ".tmp";

/// Opens a file for writing, but no pipe that nobody reads.
int open_without_waiting(const std::string& path, int flags) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags, 0666);
  const char* cause =
      errno == ENXIO ? "it is a pipe or a socket that nobody reads" : std::strerror(errno);
  WISP_CHECK(descriptor >= 0, path, ": cannot be opened for writing: ", cause);
  if (let_wait(descriptor)) return descriptor;
  close(descriptor);
  throw Error(concat(path, ": cannot be opened for writing"));
}

/// A file for writing and reading that disappears when it is closed.
int nameless_file() {
  std::FILE* file = std::tmpfile();
  WISP_CHECK(file, "cannot make a temporary file: ", std::strerror(errno));
  const int descriptor = fcntl(fileno(file), F_DUPFD_CLOEXEC, 0);
  std::fclose(file);
  WISP_CHECK(descriptor >= 0, "cannot make a temporary file: ", std::strerror(errno));
  return descriptor;
}

void copy_all(const OutputFile& from, OutputFile& to) {
  std::array<char, 1 << 16> part{};
  for (int64_t offset = 0;;) {
    const ssize_t got = pread(from.descriptor(), part.data(), part.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    WISP_CHECK(got >= 0, to.path(), ": its temporary file cannot be read: ", std::strerror(errno));
    if (got == 0) return;
    to.write({part.data(), static_cast<size_t>(got)});
    offset += got;
  }
}

}  // namespace

OutputFile::OutputFile(std::string path, Mode mode) : path_(std::move(path)) {
  const int how = mode == Mode::append ? O_APPEND : mode == Mode::replace ? O_TRUNC : 0;
  descriptor_ = open_without_waiting(path_, O_CREAT | how);
}

OutputFile::~OutputFile() { close(descriptor_); }

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    WISP_CHECK(written >= 0, path_, ": cannot be written: ", std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::write_at(int64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(descriptor_, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    WISP_CHECK(written >= 0, path_, ": cannot be written: ", std::strerror(errno));
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
}

void OutputFile::sync() {
  WISP_CHECK(fsync(descriptor_) == 0, path_, ": cannot be synced: ", std::strerror(errno));
}

std::string unfinished_name(std::string_view word) { return concat(kUnfinished, word, kTemporary); }

bool is_unfinished(std::string_view name) {
  return name.starts_with(kUnfinished) && name.ends_with(kTemporary);
}

void remove_path(const std::string& path) {
  std::error_code failure;
  std::filesystem::remove(path, failure);
  WISP_CHECK(!failure || failure == std::errc::directory_not_empty, path,
             ": cannot be removed: ", failure.message());
}

void sync_directory(const std::string& path) {
  const int descriptor = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  WISP_CHECK(descriptor >= 0, path, ": cannot be opened: ", std::strerror(errno));
  const int failed = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  WISP_CHECK(failed == 0, path, ": cannot be synced: ", std::strerror(failed));
}

void rename_path(const std::string& from, const std::string& to) {
  WISP_CHECK(std::rename(from.c_str(), to.c_str()) == 0, from, ": cannot be renamed to ", to, ": ",
             std::strerror(errno));
}

WholeFile::WholeFile(std::string path, Unread pipe) : path_(std::move(path)) {
  const std::optional<std::string> target = behind_links(path_);
  WISP_CHECK(target, path_, ": cannot be opened for writing: ", std::strerror(ELOOP));
  target_ = *target;
  struct stat old {};
  const bool exists = stat(path_.c_str(), &old) == 0;
  const int own = own_descriptor(target_);
  if (own >= 0 || (exists && !S_ISREG(old.st_mode))) {
    open_as(own >= 0                  ? fcntl(own, F_DUPFD_CLOEXEC, 0)
            : pipe == Unread::awaited ? open(path_.c_str(), O_WRONLY | O_CLOEXEC)
                                      : open_without_waiting(path_, 0));
    return;
  }
  if (!open_temporary(exists)) {
    open_as(open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    return;
  }
  if (!exists) return;
  // The mode comes last, because a change of the owner changes it. Only root may change a file's
  // owner.
  [[maybe_unused]] const int given = fchown(file_->descriptor(), old.st_uid, old.st_gid);
  if (fchmod(file_->descriptor(), old.st_mode & 07777) == 0) return;
  const std::string cause = std::strerror(errno);
  unlink(temporary_.c_str());
  throw Error(concat(path_, ": its mode cannot be kept: ", cause));
}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void WholeFile::open_as(int descriptor) {
  WISP_CHECK(descriptor >= 0, path_, ": cannot be opened for writing: ", std::strerror(errno));
  file_ = std::make_unique<OutputFile>(path_, descriptor);
}

/// Opens a file with a unique name beside the target. Returns false if the directory is not
/// writable but the target `exists`.
bool WholeFile::open_temporary(bool exists) {
  const std::string folder = parent_directory(target_) + "/";
  int descriptor = -1;
  for (int number = 0; descriptor < 0; ++number) {
    temporary_ = folder + unfinished_name(concat(getpid(), "-", number));
    descriptor = open(temporary_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) temporary_.clear();
  if (descriptor < 0 && exists && (errno == EACCES || errno == EROFS)) return false;
  open_as(descriptor);
  return true;
}

void WholeFile::write_at(int64_t offset, std::string_view bytes) {
  if (temporary_.empty() && !through_) {
    through_ = std::move(file_);
    file_ = std::make_unique<OutputFile>(path_, nameless_file());
  }
  file_->write_at(offset, bytes);
}

void WholeFile::finish() {
  if (through_) copy_all(*file_, *through_);
  if (temporary_.empty()) return;
  file_->sync();
  if (std::rename(temporary_.c_str(), target_.c_str()) == 0) {
    temporary_.clear();
    return;
  }
  // a mounted file, as in a container, cannot be replaced
  WISP_CHECK(errno == EBUSY, path_, ": cannot be replaced: ", std::strerror(errno));
  OutputFile mounted(path_, OutputFile::Mode::replace);
  copy_all(*file_, mounted);
  mounted.sync();
}

void write_file(const std::string& path, std::string_view content, Unread pipe) {
  WholeFile file(path, pipe);
  file.write(content);
  file.finish();
}

std::string parent_directory(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

}  // namespace wisp
