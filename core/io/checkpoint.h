// Checkpoint files, which survive a kill: named tensors in safetensors format, with checksums. A
// file's bytes depend only on its content. An object belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/io/input_file.h"
#include "core/io/output_file.h"
#include "core/io/safetensors.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// Writes a file whose tensors arrive piece by piece, so that no tensor has to be in memory as a
/// whole.
class CheckpointStream {
 public:
  struct Entry {
    Shape shape;
    DType dtype = DType::f32;
  };

  /// `tensors` are all tensors of the file. Throws Error if the file cannot be made.
  CheckpointStream(std::string path, const std::map<std::string, Entry>& tensors,
                   const std::map<std::string, std::string>& metadata = {});
  /// Appends elements on the host to a tensor. Throws Error for another dtype, or for more elements
  /// than the tensor's shape holds.
  void append(const std::string& name, const Tensor& part);
  /// Gives the file its name: until then `path` is the old file. Throws Error if a tensor is
  /// incomplete or the disk is full; then the old file does not change.
  void finish();

 private:
  struct Progress {
    int64_t bytes = 0;
    uint32_t checksum = 0;
  };

  SafetensorsHeader header_;
  WholeFile file_;
  int64_t data_ = 0;  // offset of the data, behind the header
  std::map<std::string, Progress> progress_;
};

class CheckpointWriter {
 public:
  /// `tensor` lies on the host and must not change before write(). Throws Error for a name used
  /// twice.
  void add(const std::string& name, const Tensor& tensor);
  void metadata(const std::string& key, const std::string& value);
  /// Writes a WholeFile. Throws Error (a full disk); then the old file does not change.
  void write(const std::string& path) const;

 private:
  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Reads the header at once, and each tensor on request. Throws Error with the path and the
/// tensor's name if the file is cut or damaged.
class CheckpointReader {
 public:
  /// Files of CheckpointWriter have all checksums, files of other programs none. Missing checksums
  /// are an error if `required`. Checksums that exist are always verified.
  enum class Checksums { required, optional };

  explicit CheckpointReader(std::string path, Checksums checksums = Checksums::required);

  const std::string& path() const { return file_.path(); }
  std::vector<std::string> names() const;  // sorted
  bool has(const std::string& name) const { return header_.tensors.count(name) != 0; }
  /// A tensor's entry in the header. Throws Error if the file has no tensor of that name.
  const SafetensorsEntry& entry(const std::string& name) const;
  /// Copies the tensor into `into`, which lies on the host. Throws Error if the tensor is missing,
  /// has another shape or dtype, or has a wrong checksum; after a wrong checksum `into` holds the
  /// damaged values.
  void read(const std::string& name, const Tensor& into) const;
  /// The tensor with the shape that the file says. Throws Error also for another dtype, before it
  /// takes memory, which is thus never more than the file has.
  Tensor read(const std::string& name, DType dtype) const;
  bool has_metadata(const std::string& key) const { return header_.metadata.count(key) != 0; }
  /// Throws Error if the key is missing.
  const std::string& metadata(const std::string& key) const;

 private:
  RandomAccessFile file_;
  SafetensorsHeader header_;
  int64_t data_ = 0;  // offset of the data, behind the header
};

}  // namespace wisp
