// A caching memory pool and the blocks it lends. The pool is thread-safe. A block freed on one
// stream is lent again only on the same stream, so in-order work never sees its memory change
// hands. When a stream has ended, its work is done, and others may have its free blocks. Whoever
// frees a block of an ended stream has waited for other streams' work on the block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "core/device/device.h"
#include "core/device/stream_id.h"

namespace wisp {

struct MemoryStats {
  int64_t system_allocations = 0;  // number of times that the system was asked for memory
  int64_t reserved_bytes = 0;      // bytes from the system
  int64_t used_bytes = 0;          // bytes lent now
  int64_t peak_used_bytes = 0;     // most bytes lent at once
};

struct MemoryOptions {
  int64_t range_bytes = int64_t{16} << 30;  // addresses reserved at a time for a stream
  /// Gives each block a mapping of its own, which ends with the block. An access behind the end
  /// ends the program, or fails the kernel. A block then takes at least a page: for tests.
  bool guarded = false;
};

/// A pool with a growing range of addresses per stream. Free neighbours merge into one block, and
/// the best fit is lent first, so memory of small layers serves large ones. A stream that lacks
/// memory takes over an ended stream's range before its own grows. Blocks are 64-byte aligned. A
/// process shares one pool per device.
class MemoryPool {
 public:
  struct Block;

  explicit MemoryPool(Device device = {}, const MemoryOptions& options = {});
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  Device device() const { return device_; }
  /// Throws OutOfMemory with the sizes asked for and held if the system has no memory left.
  Block* allocate(int64_t bytes, const StreamId& stream);
  void free(Block* block) noexcept;
  static std::byte* data(const Block* block);
  /// Whether `memory` lies in this pool.
  bool holds(const std::byte* memory) const;
  MemoryStats stats() const;

 private:
  using FreeList = std::multimap<int64_t, Block*>;  // key: bytes
  struct Range;

  Block* take_fitting(Range& range, int64_t bytes);
  bool fits(const Range& range, int64_t bytes) const;
  void take_over(Range& range, int64_t bytes);
  bool give_back_ended(const Range& asking);
  void grow(Range& range, int64_t bytes);
  void grow_guarded(Range& range, int64_t bytes);
  void count_growth(bool grown, int64_t bytes);

  Device device_;
  MemoryOptions options_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::unique_ptr<Range>> ranges_;  // key: number of the stream
  MemoryStats stats_;
};

/// A block of memory, returned to its pool when the last owner releases it.
class Storage {
 public:
  Storage(MemoryPool& pool, int64_t bytes, const StreamId& stream);
  /// Zeroed host memory outside any pool, for stand-alone host tensors.
  explicit Storage(int64_t bytes);
  /// Host memory with a foreign owner, whose deleter frees it.
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
  std::shared_ptr<std::byte> owner_;  // owner of memory outside a pool
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  Device device_;
};

}  // namespace wisp
