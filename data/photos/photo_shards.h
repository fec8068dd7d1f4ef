// Photos packed in a few large files, the shards, with an index. Folders of a million small files
// are slow to list, copy and read; shards are not.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/file_lock.h"
#include "core/io/input_file.h"
#include "core/io/output_file.h"
#include "core/tensor/tensor.h"
#include "data/photos/photo_set.h"

namespace wisp {

/// Whether a folder holds an index of shards.
bool has_shards(const std::string& folder);
/// The names of the classes in the folder's index. Throws Error with the path for a damaged index.
std::vector<std::string> classes_of_shards(const std::string& folder);
/// The line about their content that the shards' writer was given. Throws Error like
/// classes_of_shards().
std::string origin_of_shards(const std::string& folder);

/// The photos of shards. Takes the bytes of a photo's name and 36 more. Any thread may read.
class PhotoShards final : public PhotoSet {
 public:
  /// Reads the index and the head of each shard. Throws Error with the path for a damaged index,
  /// and for a shard that is missing, of another length, or of another index.
  explicit PhotoShards(std::string folder);

  int64_t count() const override { return labels_.numel(); }
  int32_t label(int64_t photo) const override { return labels_.data<int32_t>()[photo]; }
  const std::string& folder() const override { return folder_; }
  std::string name(int64_t photo) const override;
  /// Throws Error also if the checksum is wrong.
  std::string_view bytes(int64_t photo, std::string& buffer) const override;
  /// From the index: names, classes, and checksums of the bytes.
  uint64_t digest() const override { return digest_; }

 private:
  void check(int64_t classes, const Tensor& lengths) const;
  void open(size_t shard, int64_t length);

  const std::string folder_;
  Tensor labels_, shards_, checksums_;  // i32
  Tensor offsets_, sizes_, name_ends_;  // i64
  std::string names_;                   // one after the other
  uint64_t digest_ = 0;
  std::vector<RandomAccessFile> files_;  // the shards
};

/// Writes shards, and then their index, without which a folder holds none. One thread.
class PhotoShardWriter {
 public:
  /// Creates the folder, and removes shards without an index, which a killed writer left. `origin`
  /// is a line about what the shards are made of. Throws Error if the folder holds an index, if it
  /// cannot be written, or if another process writes it (on a file system with locks), and for a
  /// class whose name is not UTF-8 or has a line end.
  PhotoShardWriter(std::string folder, std::vector<std::string> classes, std::string origin,
                   int64_t shard_bytes = kShardBytes);
  /// Removes the shards unless finish() has completed.
  ~PhotoShardWriter();

  /// Appends a photo: PhotoSet::name, its class, and its file's bytes. Throws Error (a full disk).
  void add(const std::string& name, int32_t label, std::string_view bytes);
  /// Syncs the shards and writes the index. Throws Error.
  void finish();

  /// All shards are open at once: a terabyte needs 128 descriptors.
  static constexpr int64_t kShardBytes = int64_t{8} << 30;

 private:
  void remove_shards() const;

  const std::string folder_;
  const std::vector<std::string> classes_;
  const std::string origin_;
  const int64_t shard_bytes_;
  std::optional<FileLock> lock_;  // of the folder, until the index is there
  std::vector<std::unique_ptr<OutputFile>> shards_;
  std::vector<int64_t> lengths_;  // of the shards, in bytes
  std::vector<int32_t> shard_of_, labels_, checksums_;
  std::vector<int64_t> offsets_, sizes_, name_ends_;
  std::string names_;
};

}  // namespace wisp
