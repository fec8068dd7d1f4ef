#include "core/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <utility>

#include "core/io/utf8.h"

namespace wisp {

namespace fs = std::filesystem;

int64_t file_bytes(const std::string& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  WISP_CHECK(type != fs::file_type::not_found, "there is no such file");
  WISP_CHECK(!failure, "it cannot be read: ", failure.message());
  WISP_CHECK(type == fs::file_type::regular, "it is no file");
  const auto bytes = static_cast<int64_t>(fs::file_size(path, failure));
  WISP_CHECK(!failure, "it cannot be read: ", failure.message());
  return bytes;
}

std::string read_head(const std::string& path, int64_t most_bytes) {
  std::string bytes(static_cast<size_t>(std::min(file_bytes(path), most_bytes)), '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(bytes.data(), std::ssize(bytes));
  WISP_CHECK(in, "it cannot be read");
  return bytes;
}

std::string read_whole_file(const std::string& path, int64_t most_bytes) {
  const int64_t size = file_bytes(path);
  WISP_CHECK(size <= most_bytes, "it has ", size, " bytes, expected ", most_bytes, " at most");
  return read_head(path, size);
}

std::string read_to_end(const std::string& path) {
  std::error_code failure;
  std::ifstream in(path, std::ios::binary);
  WISP_CHECK(in && !fs::is_directory(path, failure), "cannot read the file");
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  WISP_CHECK(!in.bad(), "cannot read the file to its end");
  return bytes;
}

std::string read_utf8(const std::string& path) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // written by spreadsheets and some editors
  std::string text = read_to_end(path);
  check_utf8(text);
  const size_t zero = text.find('\0');
  WISP_CHECK(zero == text.npos, "line ", 1 + std::count(text.data(), text.data() + zero, '\n'),
             " has a byte of zero, expected text");
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

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
