#include "core/storage.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/error.h"

namespace wisp {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int64_t kSlabBytes = int64_t{4} << 20;  // small requests share slabs of this size

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Large blocks begin on a huge page and ask for them: scattered reads then miss the TLB less
/// often.
std::byte* system_allocate(int64_t bytes) {
  const bool large = bytes >= kHugePage;
  void* data = nullptr;
  const auto size = static_cast<size_t>(bytes);
  if (posix_memalign(&data, static_cast<size_t>(large ? kHugePage : kAlignment), size) != 0) {
    return nullptr;
  }
  if (large) madvise(data, size, MADV_HUGEPAGE);  // advice: a kernel without them changes nothing
  return static_cast<std::byte*>(data);
}

void system_free(std::byte* data) { std::free(data); }

}  // namespace

struct MemoryPool::Block {
  std::byte* data = nullptr;
  int64_t bytes = 0;
  int64_t stream_id = 0;
  bool free = false;
  Block* before = nullptr;  // neighbours in the same slab
  Block* after = nullptr;
  FreeList::iterator place;  // valid while free
};

MemoryPool::MemoryPool(Device device) : device_(device) {
  WISP_CHECK(!device.is_cuda(), "MemoryPool: this build has no allocator for ", device.str());
}

MemoryPool::~MemoryPool() {
  for (auto& [stream_id, list] : free_) {
    for (auto& [bytes, block] : list) delete block;
  }
  for (std::byte* slab : slabs_) system_free(slab);
}

std::byte* MemoryPool::data(const Block* block) { return block->data; }

MemoryStats MemoryPool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void MemoryPool::insert_free(Block* block) {
  block->free = true;
  block->place = free_[block->stream_id].emplace(block->bytes, block);
}

void MemoryPool::remove_free(Block* block) {
  block->free = false;
  free_[block->stream_id].erase(block->place);
}

MemoryPool::Block* MemoryPool::take_fitting(FreeList& list, int64_t bytes) {
  const auto found = list.lower_bound(bytes);
  if (found == list.end()) return nullptr;
  Block* block = found->second;
  remove_free(block);
  if (block->bytes > bytes) {
    auto* rest = new Block{block->data + bytes,
                           block->bytes - bytes,
                           block->stream_id,
                           false,
                           block,
                           block->after,
                           {}};
    if (block->after) block->after->before = rest;
    block->after = rest;
    block->bytes = bytes;
    insert_free(rest);
  }
  return block;
}

MemoryPool::Block* MemoryPool::allocate(int64_t bytes, int64_t stream_id) {
  bytes = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  std::lock_guard lock(mutex_);
  Block* block = take_fitting(free_[stream_id], bytes);
  if (!block) {
    const int64_t slab_bytes = bytes < kSlabBytes / 4 ? kSlabBytes : bytes;
    std::byte* slab = system_allocate(slab_bytes);
    WISP_CHECK(slab, "out of memory: ", slab_bytes, " bytes asked for, ", stats_.reserved_bytes,
               " bytes held");
    slabs_.push_back(slab);
    ++stats_.system_allocations;
    stats_.reserved_bytes += slab_bytes;
    insert_free(new Block{slab, slab_bytes, stream_id, false, nullptr, nullptr, {}});
    block = take_fitting(free_[stream_id], bytes);
  }
  stats_.used_bytes += block->bytes;
  stats_.peak_used_bytes = std::max(stats_.peak_used_bytes, stats_.used_bytes);
  return block;
}

void MemoryPool::free(Block* block) noexcept {
  std::lock_guard lock(mutex_);
  stats_.used_bytes -= block->bytes;
  if (Block* after = block->after; after && after->free) {
    remove_free(after);
    block->bytes += after->bytes;
    block->after = after->after;
    if (block->after) block->after->before = block;
    delete after;
  }
  if (Block* before = block->before; before && before->free) {
    remove_free(before);
    before->bytes += block->bytes;
    before->after = block->after;
    if (before->after) before->after->before = before;
    delete block;
    block = before;
  }
  insert_free(block);
}

Storage::Storage(MemoryPool& pool, int64_t bytes, int64_t stream_id)
    : pool_(&pool),
      block_(pool.allocate(bytes, stream_id)),
      data_(MemoryPool::data(block_)),
      device_(pool.device()) {}

Storage::Storage(int64_t bytes) {
  bytes = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  data_ = system_allocate(bytes);
  WISP_CHECK(data_, "out of memory: ", bytes, " bytes asked for");
  std::memset(data_, 0, static_cast<size_t>(bytes));
}

Storage::~Storage() {
  if (pool_) {
    pool_->free(block_);
  } else {
    system_free(data_);
  }
}

}  // namespace wisp
