// A file being written, where no failure goes unnoticed. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace wisp {

class OutputFile {
 public:
  enum class Mode { replace, append };

  /// Throws Error with the path and the system's words if the file cannot be opened.
  OutputFile(std::string path, Mode mode);
  /// Takes an open descriptor; `path` is what errors call it.
  OutputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  /// Hands the bytes to the system: other readers see them at once. Throws Error (a full disk).
  void write(std::string_view bytes);
  /// The same from byte `offset` on, of a file that was replaced; write() goes on where it was.
  void write_at(int64_t offset, std::string_view bytes);
  /// Returns when the bytes are on the disk. Throws Error.
  void sync();

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// A file that is under its name when it is whole, and the old one until then, whoever else writes
/// it. Links are followed and the file's mode is kept. What is no regular file (a device, a FIFO)
/// and what the process has open already (/dev/fd/N, /dev/stdout) is written through; so is a file
/// that cannot be replaced, where nothing may be made beside it or where it is a mount.
class WholeFile {
 public:
  /// Throws Error with the path and the system's words if it cannot be written.
  explicit WholeFile(std::string path);
  /// Leaves the old file, unless finish() has come to its end.
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  const std::string& path() const { return path_; }
  /// These throw Error as those of OutputFile. What is written at an offset of no regular file
  /// waits for finish().
  void write(std::string_view bytes) { file_->write(bytes); }
  void write_at(int64_t offset, std::string_view bytes);
  /// Syncs, and gives the file its name. Throws Error.
  void finish();

 private:
  void open_as(int descriptor);
  bool open_temporary(bool exists);

  const std::string path_;
  std::string target_;     // where the links of `path_` end
  std::string temporary_;  // until the file has its name; empty if it is written through
  std::unique_ptr<OutputFile> file_;
  std::unique_ptr<OutputFile> through_;  // where `file_`, which has no name, goes in the end
};

/// Makes renames and new names in a directory durable. Throws Error.
void sync_directory(const std::string& path);
/// rename(2). Throws Error with both names.
void rename_path(const std::string& from, const std::string& to);
/// Writes a WholeFile. Throws Error with the path (a full disk).
void write_file(const std::string& path, std::string_view content);
/// The directory that a name stands in; "." if it has none.
std::string parent_directory(const std::string& path);

}  // namespace wisp
