#include "core/io/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"

namespace wisp {

OutputFile::OutputFile(std::string path, Mode mode) : path_(std::move(path)) {
  const int how = mode == Mode::append ? O_APPEND : O_TRUNC;
  descriptor_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  WISP_CHECK(descriptor_ >= 0, path_, ": cannot be opened for writing: ", std::strerror(errno));
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

void OutputFile::write(const std::byte* data, size_t bytes) {
  write(std::string_view(reinterpret_cast<const char*>(data), bytes));
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

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp";
  {
    OutputFile file(temporary, OutputFile::Mode::replace);
    file.write(content);
    file.sync();
  }
  rename_path(temporary, path);
}

std::string parent_directory(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

}  // namespace wisp
