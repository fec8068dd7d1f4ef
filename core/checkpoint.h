// State on disk that survives a kill: named tensors in a safetensors file, with checksums. A file's
// bytes depend on its content alone. An object belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace wisp {

class CheckpointWriter {
 public:
  /// `tensor` lies on the host and keeps its content until write(). Throws Error for a name used
  /// twice.
  void add(const std::string& name, const Tensor& tensor);
  void metadata(const std::string& key, const std::string& value);
  /// Writes to PATH.tmp, syncs, and renames it: `path` is the old file or the whole new one. Throws
  /// Error (a full disk); then the old file is as it was.
  void write(const std::string& path) const;

 private:
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Reads the header at once and each tensor when asked. Throws Error with the path, and the name,
/// for a file that is cut, damaged, or not one of CheckpointWriter's.
class CheckpointReader {
 public:
  explicit CheckpointReader(std::string path);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  std::vector<std::string> names() const;  // sorted
  bool has(const std::string& name) const { return tensors_.count(name) != 0; }
  /// Copies the tensor into `into`, which lies on the host. Throws Error if the file has no such
  /// tensor, or one of another shape or dtype, or one whose checksum is wrong (`into` then holds
  /// the damaged values).
  void read(const std::string& name, const Tensor& into) const;
  bool has_metadata(const std::string& key) const { return metadata_.count(key) != 0; }
  /// Throws Error if it is missing.
  const std::string& metadata(const std::string& key) const;

 private:
  struct Entry {
    std::string dtype;
    std::vector<int64_t> extents;
    int64_t begin = 0, end = 0;  // bytes, in the file
    std::string checksum;
  };

  void read_header(int64_t file_bytes);
  void read_bytes(void* into, int64_t bytes, int64_t offset) const;

  std::string path_;
  int descriptor_ = -1;
  std::map<std::string, Entry> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace wisp
