// A file that is read from any place. Any thread may read.
#pragma once

#include <cstdint>
#include <string>

namespace wisp {

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
