// Files for writing, which report every failure. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace wisp {

/// What becomes of a pipe that nobody reads.
enum class Unread {
  refused,  // in folders of Wisp's, where nobody waits for a pipe's reader
  awaited   // for a path that a user gives
};

class OutputFile {
 public:
  /// Whether the old content goes; an appended file gets all at its end.
  enum class Mode { replace, append, keep };

  /// Throws Error with the path and the cause if the file cannot be opened, also if it is a pipe
  /// that nobody reads.
  OutputFile(std::string path, Mode mode);
  /// Takes ownership of an open descriptor. Errors name `path`.
  OutputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return descriptor_; }
  /// Passes the bytes to the system, so that other readers see them at once. Throws Error (a full
  /// disk).
  void write(std::string_view bytes);
  /// Writes at byte `offset`, in a file opened with another mode than append. It does not move the
  /// position of write(). Throws Error (a full disk).
  void write_at(int64_t offset, std::string_view bytes);
  /// Waits until the bytes are on the disk. Throws Error.
  void sync();

 private:
  std::string path_;
  int descriptor_ = -1;
};

/// A file that gets its name when it is complete. Until then the old file stays, however many
/// writers there are. Links are followed, and its mode is kept. Some files are written directly: a
/// device or a FIFO, a file that the process already has open (/dev/fd/N, /dev/stdout), and a file
/// that cannot be replaced, because it is a mount or its directory is read-only.
class WholeFile {
 public:
  /// Throws Error with the path and the system's message if the file cannot be written.
  explicit WholeFile(std::string path, Unread pipe = Unread::refused);
  /// Keeps the old file unless finish() has completed.
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  const std::string& path() const { return path_; }
  /// Both throw Error like OutputFile. If the file is written directly, a write at an offset takes
  /// effect in finish().
  void write(std::string_view bytes) { file_->write(bytes); }
  void write_at(int64_t offset, std::string_view bytes);
  /// Syncs the file and gives it its name. Throws Error.
  void finish();

 private:
  void open_as(int descriptor);
  bool open_temporary(bool exists);

  const std::string path_;
  std::string target_;     // `path_` with its links resolved
  std::string temporary_;  // name until finish(); empty if written directly
  std::unique_ptr<OutputFile> file_;
  std::unique_ptr<OutputFile> through_;  // final file, if `file_` is nameless
};

/// A name for a file before it gets its own, or one for a moment. `word` tells such files apart.
std::string unfinished_name(std::string_view word);
/// Whether a name is an unfinished_name(), whose file a killed process may leave.
bool is_unfinished(std::string_view name);
/// Removes a file, a link, or a directory that is empty; leaves any other. Throws Error.
void remove_path(const std::string& path);
/// Makes renames and new names in a directory durable. Throws Error.
void sync_directory(const std::string& path);
/// Calls rename(2). Throws Error with both names.
void rename_path(const std::string& from, const std::string& to);
/// Writes a WholeFile. Throws Error with the path (a full disk).
void write_file(const std::string& path, std::string_view content, Unread pipe = Unread::refused);
/// The directory part of a path; "." if it has none.
std::string parent_directory(const std::string& path);

}  // namespace wisp
