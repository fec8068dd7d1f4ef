#include "core/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "core/io/descriptor.h"
#include "core/io/utf8.h"

namespace wisp {
namespace {

constexpr int64_t kBlock = int64_t{1} << 14;
constexpr int64_t kMostText = int64_t{1} << 36;  // of a file; a sparse one may claim any size

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

/// Whether a file of this mode is one that a user may give. A pipe with a name in a folder may
/// never have a writer; one that this process has open already has had one.
bool is_given(const std::string& path, mode_t mode) {
  return S_ISCHR(mode) || (S_ISFIFO(mode) && own_descriptor(path) >= 0);
}

/// Appends bytes to `text` up to the file's end. Throws Error if there are more than `most`.
/// Calls see(block) for each block before it is appended.
template <class See>
void read_on(InputFile& file, int64_t most, std::string& text, const See& see) {
  WISP_CHECK(file.bytes() <= most, "it has ", file.bytes(), " bytes, expected ", most, " at most");
  text.reserve(static_cast<size_t>(file.bytes()));
  std::vector<char> block(static_cast<size_t>(std::min(kBlock, most + 1)));
  for (;;) {
    const int64_t got = file.read(block.data(), std::ssize(block));
    if (got == 0) return;
    WISP_CHECK(got <= most - std::ssize(text), "it has more than ", most,
               " bytes, which are the most that are read");
    const std::string_view part(block.data(), static_cast<size_t>(got));
    see(part);
    text += part;
  }
}

}  // namespace

InputFile::InputFile(const std::string& path, Input may_be) {
  // O_NONBLOCK opens a pipe without a writer, and has no effect on a plain file
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  WISP_CHECK(descriptor_ >= 0 || errno != ENOENT, "there is no such file");
  WISP_CHECK(descriptor_ >= 0 || errno != ENXIO, "it is no file, but a socket or a device");
  WISP_CHECK(descriptor_ >= 0, "it cannot be read: ", std::strerror(errno));
  try {
    struct stat status {};
    WISP_CHECK(fstat(descriptor_, &status) == 0, "it cannot be read: ", std::strerror(errno));
    plain_ = S_ISREG(status.st_mode);
    WISP_CHECK(plain_ || (may_be == Input::file_or_pipe && is_given(path, status.st_mode)),
               "it is no file, but ", kind_of(status.st_mode));
    if (plain_) bytes_ = status.st_size;
    WISP_CHECK(plain_ || let_wait(descriptor_), "it cannot be read: ", std::strerror(errno));
  } catch (const Error&) {
    close(descriptor_);
    throw;
  }
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(other.bytes_),
      plain_(other.plain_) {}

int64_t InputFile::read(char* into, int64_t most) {
  int64_t sum = 0;
  while (sum < most) {
    const ssize_t got = ::read(descriptor_, into + sum, static_cast<size_t>(most - sum));
    if (got < 0 && errno == EINTR) continue;
    WISP_CHECK(got >= 0, "it cannot be read: ", std::strerror(errno));
    if (got == 0) break;
    sum += got;
  }
  return sum;
}

int64_t InputFile::read_at(char* into, int64_t most, int64_t offset) const {
  int64_t sum = 0;
  while (sum < most) {
    const ssize_t got =
        pread(descriptor_, into + sum, static_cast<size_t>(most - sum), offset + sum);
    if (got < 0 && errno == EINTR) continue;
    WISP_CHECK(got >= 0, "it cannot be read: ", std::strerror(errno));
    if (got == 0) break;
    sum += got;
  }
  return sum;
}

bool is_there(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0;
}

int64_t file_bytes(const std::string& path) { return InputFile(path).bytes(); }

std::string read_head(const std::string& path, int64_t most_bytes) {
  InputFile file(path);
  std::string bytes(static_cast<size_t>(std::min(file.bytes(), most_bytes)), '\0');
  bytes.resize(static_cast<size_t>(file.read(bytes.data(), std::ssize(bytes))));
  return bytes;
}

std::string read_whole_file(const std::string& path, int64_t most_bytes, Input may_be) {
  InputFile file(path, may_be);
  std::string bytes;
  if (file.bytes() > 0 && file.bytes() <= most_bytes) {
    bytes.resize(static_cast<size_t>(file.bytes()));
    bytes.resize(static_cast<size_t>(file.read(bytes.data(), std::ssize(bytes))));
  } else {
    read_on(file, most_bytes, bytes, [](std::string_view) {});
  }
  return bytes;
}

std::string read_utf8(const std::string& path, Input may_be) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";  // written by spreadsheets and some editors
  InputFile file(path, may_be);
  std::string text;
  read_on(file, file.is_plain() ? kMostText : kMostPiped, text, [&](std::string_view block) {
    const size_t zero = block.find('\0');
    if (zero == block.npos) return;
    check_utf8(text.append(block.substr(0, zero)));
    throw Error(concat("line ", 1 + std::count(text.begin(), text.end(), '\n'),
                       " has a byte of zero, expected text"));
  });
  check_utf8(text);
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

InputLines::InputLines(std::string path, int64_t most_line_bytes, Input may_be)
    : path_(std::move(path)),
      most_(most_line_bytes),
      file_(naming(path_, [&] { return InputFile(path_, may_be); })) {}

std::optional<std::string_view> InputLines::next() {
  size_t searched = 0;  // bytes of the line without a line feed
  for (;;) {
    const size_t feed = block_.find('\n', at_ + searched);
    const size_t end = std::min(feed, block_.size());
    const std::string_view line = std::string_view(block_).substr(at_, end - at_);
    WISP_CHECK(std::ssize(line) <= most_, path_, ":", number_ + 1, ": a line of more than ", most_,
               " bytes, expected shorter ones");
    if (feed != block_.npos) {
      at_ = feed + 1;
      ++number_;
      return line;
    }
    if (ended_) {
      if (line.empty()) return std::nullopt;
      at_ = block_.size();
      cut_off_ = true;
      ++number_;
      return line;
    }
    searched = line.size();
    read_block();
  }
}

void InputLines::read_block() {
  block_.erase(0, at_);
  at_ = 0;
  const size_t before = block_.size();
  block_.resize(before + static_cast<size_t>(kBlock));
  const int64_t got = naming(path_, [&] { return file_.read(block_.data() + before, kBlock); });
  block_.resize(before + static_cast<size_t>(got));
  ended_ = got == 0;
}

RandomAccessFile::RandomAccessFile(std::string path)
    : path_(std::move(path)), file_(naming(path_, [&] { return InputFile(path_); })) {}

void RandomAccessFile::read(void* into, int64_t bytes, int64_t offset) const {
  const int64_t got =
      naming(path_, [&] { return file_.read_at(static_cast<char*>(into), bytes, offset); });
  WISP_CHECK(got == bytes, path_, ": ends at byte ", offset + got, ", ", bytes - got,
             " bytes early");
}

}  // namespace wisp
