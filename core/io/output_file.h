// A file being written, where no failure goes unnoticed. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace wisp {

class OutputFile {
 public:
  enum class Mode { replace, append };

  /// Throws Error with the path and the system's words if the file cannot be opened.
  OutputFile(std::string path, Mode mode);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  /// Hands the bytes to the system: other readers see them at once. Throws Error (a full disk).
  void write(std::string_view bytes);
  void write(const std::byte* data, size_t bytes);
  /// The same from byte `offset` on, of a file that was replaced; write() goes on where it was.
  void write_at(int64_t offset, std::string_view bytes);
  /// Returns when the bytes are on the disk. Throws Error.
  void sync();

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// Makes renames and new names in a directory durable. Throws Error.
void sync_directory(const std::string& path);
/// rename(2). Throws Error with both names.
void rename_path(const std::string& from, const std::string& to);
/// Writes PATH.tmp, syncs, and renames it: `path` is the old file or the whole new one. Throws
/// Error with the path (a full disk).
void write_file(const std::string& path, std::string_view content);
/// The directory that a name stands in; "." if it has none.
std::string parent_directory(const std::string& path);

}  // namespace wisp
