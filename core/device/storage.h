// Memory: a caching pool and the blocks it lends. The pool is thread-safe; a block freed on one
// stream is lent again only on the same stream, so in-order work never sees its memory change
// hands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "core/device/device.h"

namespace wisp {

struct MemoryStats {
  int64_t system_allocations = 0;  // times memory was asked of the system so far
  int64_t reserved_bytes = 0;   // held from the system; its own peak: nothing is given back early
  int64_t used_bytes = 0;       // lent now
  int64_t peak_used_bytes = 0;  // most lent at once
};

struct MemoryOptions {
  int64_t range_bytes = int64_t{16} << 30;  // of addresses, reserved at a time for a stream
  /// Each block ends where its memory does, and nothing lies behind: who goes beyond the end ends
  /// the program, or its kernel fails. A block takes a mapping and a page at least: for tests.
  bool guarded = false;
};

/// A growing range of addresses per stream, in which free neighbours become one block and the
/// best fit is lent first: what the small layers left serves the large ones. Blocks are 64-byte
/// aligned. One pool serves a whole process.
class MemoryPool {
 public:
  struct Block;

  explicit MemoryPool(Device device = {}, const MemoryOptions& options = {});
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  Device device() const { return device_; }
  /// Throws Error if the system has no memory left, with the size asked for and the size held.
  Block* allocate(int64_t bytes, int64_t stream_id);
  void free(Block* block) noexcept;
  static std::byte* data(const Block* block);
  /// Whether the memory is this pool's.
  bool holds(const std::byte* memory) const;
  MemoryStats stats() const;

 private:
  using FreeList = std::multimap<int64_t, Block*>;  // by size
  struct Range;

  Range& range_of(int64_t stream_id);
  Block* take_fitting(Range& range, int64_t bytes);
  void grow(Range& range, int64_t bytes);
  void grow_guarded(Range& range, int64_t bytes);
  void count_growth(bool grown, int64_t bytes);

  Device device_;
  MemoryOptions options_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::unique_ptr<Range>> ranges_;  // by stream id
  MemoryStats stats_;
};

/// A block that returns to its pool when the last owner lets go.
class Storage {
 public:
  Storage(MemoryPool& pool, int64_t bytes, int64_t stream_id);
  /// Memory outside any pool, zeroed: for tensors that live on the host by themselves.
  explicit Storage(int64_t bytes);
  /// Memory of the host's that is somebody else's to give back.
  Storage(std::shared_ptr<std::byte> memory, int64_t bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  Device device() const { return device_; }

 private:
  MemoryPool* pool_ = nullptr;
  MemoryPool::Block* block_ = nullptr;
  std::shared_ptr<std::byte> owner_;  // of what is no pool's
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
};

}  // namespace wisp
