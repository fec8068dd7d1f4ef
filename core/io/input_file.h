// Reading of files: whole, by lines, or from any place. A file is opened once, and what is not
// plain is refused before a byte of it is read, so nobody's pipe or device is waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/error.h"

namespace wisp {

/// Calls f() and prefixes its Errors with `where`, a path or a place in a file.
template <class F>
decltype(auto) naming(const std::string& where, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(concat(where, ": ", error.what()));
  }
}

/// What a path may lead to.
enum class Input {
  file,         // a plain file: for paths in other files, and for files in folders
  file_or_pipe  // for paths that a user gives: also /dev/stdin, /dev/fd/N (`<(…)`), and a device
};

/// The most bytes that are read of a pipe or a device, which may have no end.
constexpr int64_t kMostPiped = int64_t{1} << 30;

/// An open file. One thread reads on; any thread may call read_at().
class InputFile {
 public:
  /// Never waits for a pipe's writer. Throws Error, without the path, if there is no file, if it is
  /// none that `may_be` admits, or if it cannot be opened.
  explicit InputFile(const std::string& path, Input may_be = Input::file);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  /// The size when the file was opened; 0 for a pipe, and for a file of the system (/proc).
  int64_t bytes() const { return bytes_; }
  bool is_plain() const { return plain_; }
  /// Reads the next bytes, fewer than `most` only at the end. Throws Error without the path.
  int64_t read(char* into, int64_t most);
  /// Reads from byte `offset` of a plain file on, like read().
  int64_t read_at(char* into, int64_t most, int64_t offset) const;

 private:
  int descriptor_ = -1;
  int64_t bytes_ = 0;
  bool plain_ = true;
};

/// Whether a name is there, also as a link that leads nowhere; opening the file says what is wrong.
bool is_there(const std::string& path);

/// The size of a file in bytes. Throws Error, without the path, like InputFile.
int64_t file_bytes(const std::string& path);

/// The first bytes of a file, at most `most_bytes`. Throws Error, without the path, like InputFile.
std::string read_head(const std::string& path, int64_t most_bytes);

/// All bytes of a file. Throws Error, without the path, like InputFile, and if there are more than
/// `most_bytes`.
std::string read_whole_file(const std::string& path, int64_t most_bytes,
                            Input may_be = Input::file);

/// The UTF-8 text of a file, without a leading byte order mark. Throws Error, without the path,
/// like InputFile and check_utf8(), for a zero byte, and for more than kMostPiped bytes of a pipe.
std::string read_utf8(const std::string& path, Input may_be = Input::file);

/// The lines of a file, read one after the other. Errors name the path and, behind the first, the
/// line.
class InputLines {
 public:
  /// Longer than any line that a run writes.
  static constexpr int64_t kMostLineBytes = int64_t{16} << 20;

  /// Throws Error with the path like InputFile.
  explicit InputLines(std::string path, int64_t most_line_bytes = kMostLineBytes,
                      Input may_be = Input::file);

  /// The next line without its line feed, until the next call; none at the end. Throws Error if it
  /// is longer than `most_line_bytes`.
  std::optional<std::string_view> next();
  /// The number of the line that next() gave last, from 1.
  int64_t number() const { return number_; }
  /// Whether that line ends with the file, without a line feed.
  bool cut_off() const { return cut_off_; }

 private:
  void read_block();

  const std::string path_;
  const int64_t most_;
  InputFile file_;
  std::string block_;  // read bytes, of which those before at_ are used
  size_t at_ = 0;
  int64_t number_ = 0;
  bool ended_ = false, cut_off_ = false;
};

/// A file that is read from any place. Any thread may read.
class RandomAccessFile {
 public:
  /// Throws Error with the path like InputFile.
  explicit RandomAccessFile(std::string path);

  const std::string& path() const { return path_; }
  /// The size in bytes when the file was opened.
  int64_t bytes() const { return file_.bytes(); }
  /// Reads `bytes` from byte `offset` on. Throws Error with the path if the file ends too early.
  void read(void* into, int64_t bytes, int64_t offset) const;

 private:
  std::string path_;
  InputFile file_;
};

}  // namespace wisp
