#include "core/device/storage.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/device/address_range.h"

namespace wisp {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kGuardBytes = int64_t{2} << 20;  // a multiple of every range's granularity
constexpr int64_t kLeastReserved = int64_t{16} << 20;

int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

/// Blocks are contiguous within a range's memory; only neighbours in address merge.
struct MemoryPool::Block {
  Range* range = nullptr;
  std::byte* data = nullptr;
  int64_t bytes = 0;
  bool free = false;
  Block* before = nullptr;
  Block* after = nullptr;
  FreeList::iterator place;  // valid while free
};

struct MemoryPool::Range {
  explicit Range(const StreamId& id) : stream(id) {}

  StreamId stream;
  std::vector<std::unique_ptr<AddressRange>> memory;  // the last one grows
  FreeList free;
  Block* last = nullptr;

  /// Reserves `capacity` addresses of a device, or just `bytes` if that fails. Returns false if
  /// neither is possible. If the process has an address limit, the range at most doubles, because
  /// unused addresses would be missing elsewhere.
  bool add_memory(Device device, int64_t capacity, int64_t bytes) {
    if (address_limit()) capacity = std::min(capacity, kLeastReserved + this->bytes());
    std::unique_ptr<AddressRange> more = reserve_addresses(device, std::max(capacity, bytes));
    if (!more && capacity > bytes) more = reserve_addresses(device, bytes);
    if (!more) return false;
    memory.push_back(std::move(more));
    return true;
  }
  ~Range() {
    while (last) delete std::exchange(last, last->before);
  }
  void insert_free(Block* block) {
    block->free = true;
    block->place = free.emplace(block->bytes, block);
  }
  void remove_free(Block* block) {
    block->free = false;
    free.erase(block->place);
  }
  static bool adjacent(const Block* a, const Block* b) { return a->data + a->bytes == b->data; }
  /// Inserts `block` behind `before`, or at the front if `before` is null.
  void link(Block* block, Block* before) {
    block->before = before;
    block->after = before ? before->after : nullptr;
    if (before) before->after = block;
    (block->after ? block->after->before : last) = block;
  }
  /// Takes all memory and blocks of `other`, in front of its own, which goes on growing.
  void absorb(Range& other) {
    std::ranges::move(memory, std::back_inserter(other.memory));
    memory = std::move(other.memory);
    Block* first = last;
    while (first && first->before) first = first->before;
    for (Block* block = other.last; block; block = block->before) {
      block->range = this;
      if (block->free) insert_free(block);
    }
    if (first && other.last) {
      first->before = other.last;
      other.last->after = first;
    }
    if (!last) last = other.last;
    other.last = nullptr;
    other.free.clear();
  }
  int64_t bytes() const {
    int64_t sum = 0;
    for (const auto& part : memory) sum += part->bytes();
    return sum;
  }
  bool is_free() const {
    for (const Block* block = last; block; block = block->before)
      if (!block->free) return false;
    return true;
  }
  /// Merges `block`, the neighbour behind `into`, into `into`.
  void absorb(Block* into, Block* block) {
    into->bytes += block->bytes;
    into->after = block->after;
    (into->after ? into->after->before : last) = into;
    delete block;
  }
};

MemoryPool::MemoryPool(Device device, const MemoryOptions& options)
    : device_(device), options_(options) {}

MemoryPool::~MemoryPool() = default;

std::byte* MemoryPool::data(const Block* block) { return block->data; }

bool MemoryPool::holds(const std::byte* memory) const {
  std::lock_guard lock(mutex_);
  for (const auto& [id, range] : ranges_) {
    for (const auto& part : range->memory) {
      if (part->begin() <= memory && memory < part->begin() + part->bytes()) return true;
    }
  }
  return false;
}

MemoryStats MemoryPool::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

bool MemoryPool::fits(const Range& range, int64_t bytes) const {
  const auto found = range.free.lower_bound(bytes);
  return found != range.free.end() && (!options_.guarded || found->first == bytes);
}

/// Takes over the smallest range of an ended stream that has a fitting block. A range without
/// memory else takes over the largest, in which it then grows.
void MemoryPool::take_over(Range& range, int64_t bytes) {
  auto chosen = ranges_.end();
  bool fitting = false;
  for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
    const Range& other = *it->second;
    if (&other == &range || !other.stream.has_ended()) continue;
    const bool fits_here = fits(other, bytes);
    if (fitting && !fits_here) continue;
    const bool better = chosen == ranges_.end() || fits_here != fitting ||
                        (other.bytes() < chosen->second->bytes()) == fitting;
    if (better) chosen = it;
    fitting = fits_here;
  }
  if (chosen == ranges_.end() || (!fitting && !range.memory.empty())) return;
  range.absorb(*chosen->second);
  ranges_.erase(chosen);
}

/// Returns ended streams' memory that nobody uses to the system. Returns whether there was any.
bool MemoryPool::give_back_ended(const Range& asking) {
  const int64_t before = stats_.reserved_bytes;
  std::erase_if(ranges_, [&](const auto& entry) {
    const Range& range = *entry.second;
    if (&range == &asking || !range.stream.has_ended() || !range.is_free()) return false;
    stats_.reserved_bytes -= range.bytes();
    return true;
  });
  return stats_.reserved_bytes < before;
}

MemoryPool::Block* MemoryPool::take_fitting(Range& range, int64_t bytes) {
  if (!fits(range, bytes)) return nullptr;
  Block* block = range.free.lower_bound(bytes)->second;
  range.remove_free(block);
  if (block->bytes > bytes) {
    auto* rest = new Block{&range, block->data + bytes, block->bytes - bytes};
    block->bytes = bytes;
    range.link(rest, block);
    range.insert_free(rest);
  }
  return block;
}

/// Grows the range so that its last block is free and has at least `bytes`.
void MemoryPool::grow(Range& range, int64_t bytes) {
  Block* last = range.last;
  const int64_t there = last && last->free ? last->bytes : 0;
  int64_t more = 0;
  bool grown = false;
  if (!range.memory.empty()) {
    more = round_up(bytes - there, range.memory.back()->granularity());
    grown = range.memory.back()->grow(more);
  }
  const bool in_place = grown;
  if (!grown) {
    more = round_up(bytes, kGuardBytes);
    if (range.add_memory(device_, options_.range_bytes, more)) {
      more = round_up(bytes, range.memory.back()->granularity());
      grown = range.memory.back()->grow(more);
      if (!grown) range.memory.pop_back();
    }
  }
  count_growth(grown, more);
  const AddressRange& memory = *range.memory.back();
  auto* block = new Block{&range, memory.begin() + memory.bytes() - more, more};
  range.link(block, last);
  if (in_place && there > 0) {
    range.remove_free(last);
    range.absorb(last, block);
    block = last;
  }
  range.insert_free(block);
}

/// Adds a block of `bytes` at the end of a mapping of its own.
void MemoryPool::grow_guarded(Range& range, int64_t bytes) {
  const int64_t capacity = round_up(bytes, kGuardBytes) + kGuardBytes;
  std::unique_ptr<AddressRange> reserved = reserve_addresses(device_, capacity);
  const int64_t more = reserved ? round_up(bytes, reserved->granularity()) : bytes;
  count_growth(reserved && reserved->grow(more), more);
  range.memory.push_back(std::move(reserved));
  const AddressRange& memory = *range.memory.back();
  auto* block = new Block{&range, memory.begin() + more - bytes, bytes};
  range.link(block, range.last);
  range.insert_free(block);
}

/// Adds `bytes` to the counts. Throws OutOfMemory unless `grown`.
void MemoryPool::count_growth(bool grown, int64_t bytes) {
  if (!grown) {
    const std::optional<int64_t> limit = address_limit();
    throw OutOfMemory(concat(
        device_.is_cuda() ? device_.str() + ": " : "", "out of memory: ", bytes,
        " bytes asked for, ", stats_.reserved_bytes, " bytes held, of which ", stats_.used_bytes,
        " are in use",
        limit ? concat("; the process may have ", *limit, " bytes of addresses (ulimit -v)") : ""));
  }
  ++stats_.system_allocations;
  stats_.reserved_bytes += bytes;
}

MemoryPool::Block* MemoryPool::allocate(int64_t bytes, const StreamId& stream) {
  bytes = round_up(std::max<int64_t>(bytes, 1), kAlignment);
  std::lock_guard lock(mutex_);
  std::unique_ptr<Range>& of_stream = ranges_[stream.number];
  if (!of_stream) of_stream = std::make_unique<Range>(stream);
  Range& range = *of_stream;
  Block* block = take_fitting(range, bytes);
  if (!block) {
    take_over(range, bytes);
    block = take_fitting(range, bytes);
  }
  if (!block) {
    const auto grow_by_need = [&] {
      options_.guarded ? grow_guarded(range, bytes) : grow(range, bytes);
    };
    try {
      grow_by_need();
    } catch (const OutOfMemory&) {
      if (!give_back_ended(range)) throw;
      grow_by_need();
    }
    block = take_fitting(range, bytes);
  }
  stats_.used_bytes += block->bytes;
  stats_.peak_used_bytes = std::max(stats_.peak_used_bytes, stats_.used_bytes);
  return block;
}

void MemoryPool::free(Block* block) noexcept {
  std::lock_guard lock(mutex_);
  stats_.used_bytes -= block->bytes;
  Range& range = *block->range;
  if (Block* after = block->after; after && after->free && Range::adjacent(block, after)) {
    range.remove_free(after);
    range.absorb(block, after);
  }
  if (Block* before = block->before; before && before->free && Range::adjacent(before, block)) {
    range.remove_free(before);
    range.absorb(before, block);
    block = before;
  }
  range.insert_free(block);
}

Storage::Storage(MemoryPool& pool, int64_t bytes, const StreamId& stream)
    : pool_(&pool),
      block_(pool.allocate(bytes, stream)),
      data_(MemoryPool::data(block_)),
      bytes_(bytes),
      device_(pool.device()) {}

Storage::Storage(int64_t bytes) : bytes_(round_up(std::max<int64_t>(bytes, 1), kAlignment)) {
  data_ = static_cast<std::byte*>(
      ::operator new (static_cast<size_t>(bytes_), std::align_val_t{kAlignment}, std::nothrow));
  if (!data_) throw OutOfMemory(concat("out of memory: ", bytes_, " bytes asked for"));
  owner_ = {data_,
            [](std::byte* owned) { ::operator delete (owned, std::align_val_t{kAlignment}); }};
  std::memset(data_, 0, static_cast<size_t>(bytes_));
}

Storage::Storage(std::shared_ptr<std::byte> memory, int64_t bytes)
    : owner_(std::move(memory)), data_(owner_.get()), bytes_(bytes) {}

Storage::~Storage() {
  if (pool_) pool_->free(block_);
}

}  // namespace wisp
