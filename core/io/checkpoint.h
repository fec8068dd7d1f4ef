// State on disk that survives a kill: named tensors in a safetensors file, with checksums. A file's
// bytes depend on its content alone. An object belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/io/output_file.h"
#include "core/io/safetensors.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// A file whose tensors come piece by piece, so that none has to be in memory as a whole.
class CheckpointStream {
 public:
  struct Entry {
    Shape shape;
    DType dtype = DType::f32;
  };

  /// The tensors that the file is going to hold. Throws Error if it cannot be made.
  CheckpointStream(std::string path, const std::map<std::string, Entry>& tensors,
                   const std::map<std::string, std::string>& metadata = {});
  /// Adds elements to a tensor, behind those that it has; they lie on the host. Throws Error for
  /// another dtype, and for more than its shape has room for.
  void append(const std::string& name, const Tensor& part);
  /// Gives the file its name: `path` is the old file or the whole new one. Throws Error (a full
  /// disk), for a tensor that is not complete too; then the old file is as it was.
  void finish();

 private:
  struct Progress {
    int64_t bytes = 0;
    uint32_t checksum = 0;
  };

  SafetensorsHeader header_;
  WholeFile file_;
  int64_t data_ = 0;  // where the header ends
  std::map<std::string, Progress> progress_;
};

class CheckpointWriter {
 public:
  /// `tensor` lies on the host and keeps its content until write(). Throws Error for a name used
  /// twice.
  void add(const std::string& name, const Tensor& tensor);
  void metadata(const std::string& key, const std::string& value);
  /// Writes a WholeFile. Throws Error (a full disk); then the old file is as it was.
  void write(const std::string& path) const;

 private:
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Reads the header at once and each tensor when asked. Throws Error with the path, and the name,
/// for a file that is cut or damaged.
class CheckpointReader {
 public:
  /// A file of CheckpointWriter's has all checksums; another program's has none, which is an error
  /// if they are required. Those that are there are checked.
  enum class Checksums { required, optional };

  explicit CheckpointReader(std::string path, Checksums checksums = Checksums::required);
  ~CheckpointReader();
  CheckpointReader(const CheckpointReader&) = delete;
  CheckpointReader& operator=(const CheckpointReader&) = delete;

  const std::string& path() const { return path_; }
  std::vector<std::string> names() const;  // sorted
  bool has(const std::string& name) const { return header_.tensors.count(name) != 0; }
  /// What the file says of a tensor. Throws Error if it has none of that name.
  const SafetensorsEntry& entry(const std::string& name) const;
  /// Copies the tensor into `into`, which lies on the host. Throws Error if the file has no such
  /// tensor, or one of another shape or dtype, or one whose checksum is wrong (`into` then holds
  /// the damaged values).
  void read(const std::string& name, const Tensor& into) const;
  bool has_metadata(const std::string& key) const { return header_.metadata.count(key) != 0; }
  /// Throws Error if it is missing.
  const std::string& metadata(const std::string& key) const;

 private:
  void read_header(int64_t file_bytes, Checksums checksums);
  void check_seal(Checksums checksums) const;
  void read_bytes(void* into, int64_t bytes, int64_t offset) const;

  std::string path_;
  int descriptor_ = -1;
  SafetensorsHeader header_;
  int64_t data_ = 0;  // where the header ends
};

}  // namespace wisp
