// Reading of files: whole, or from any place. Any thread.
#pragma once

#include <cstdint>
#include <string>

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

/// The size of a file in bytes. Throws Error, without the path, if the file does not exist.
int64_t file_bytes(const std::string& path);

/// The first bytes of a file, at most `most_bytes`. Throws Error, without the path, if the file
/// does not exist or cannot be read.
std::string read_head(const std::string& path, int64_t most_bytes);

/// All bytes of a file. Throws Error, without the path, like read_head(), and if there are more
/// than `most_bytes`.
std::string read_whole_file(const std::string& path, int64_t most_bytes);

/// All bytes of a file or a pipe. Throws Error, without the path, if they cannot be read.
std::string read_to_end(const std::string& path);

/// The UTF-8 text of a file or a pipe, without a leading byte order mark. Throws Error, without the
/// path, like read_to_end() and check_utf8(), and for a zero byte.
std::string read_utf8(const std::string& path);

/// A file that is read from any place. Any thread may read.
class RandomAccessFile {
 public:
  /// Throws Error with the path and the system's message if the file cannot be opened.
  explicit RandomAccessFile(std::string path);
  ~RandomAccessFile();
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&&) = delete;

  const std::string& path() const { return path_; }
  /// The size in bytes when the file was opened.
  int64_t bytes() const { return bytes_; }
  /// Reads `bytes` from byte `offset` on. Throws Error with the path if the file ends too early.
  void read(void* into, int64_t bytes, int64_t offset) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t bytes_ = 0;
};

}  // namespace wisp
