#include "core/emulated/memory.h"

#include <execinfo.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <iterator>

#include "core/base/error.h"

namespace wisp::emulated {
namespace {

std::byte* reserve_addresses(size_t bytes) {
  void* range = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return range == MAP_FAILED ? nullptr : static_cast<std::byte*>(range);
}

/// Whether a word may be an address of this process. Its program, heaps, stacks and views are above
/// 2^44. Words below are pairs of small numbers; sanitizers map their shadows there.
bool may_be_address(uint64_t word) { return word >= uint64_t{1} << 44 && word < uint64_t{1} << 47; }

/// Whether `word` is the address of host memory.
bool is_host_memory(uint64_t word) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  unsigned char resident = 0;
  auto* begin = reinterpret_cast<void*>(word / page * page);  // NOLINT(performance-no-int-to-ptr)
  return mincore(begin, page, &resident) == 0;
}

/// The last entry whose key is at most `key`; the end if there is none.
template <class Key, class Value>
auto last_at(const std::map<Key, Value>& entries, const Key& key) {
  const auto after = entries.upper_bound(key);
  return after == entries.begin() ? entries.end() : std::prev(after);
}

/// The range of all views, for the handler that explains a fault in a view before the program ends.
/// It is read without a lock, which the faulting thread may hold.
std::atomic<const std::byte*> lowest_view{nullptr}, highest_view{nullptr};

void tell_of_touch(int, siginfo_t* fault, void*) {
  const auto* address = static_cast<const std::byte*>(fault->si_addr);
  if (lowest_view <= address && address < highest_view) {
    constexpr char kText[] =
        "emulated device: the host touched memory of the device's, which only kernels, libraries "
        "on a stream and copies may (core/copy.h); the calls, innermost first:\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kText, sizeof kText - 1);
    void* frames[32];
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
  }
  signal(SIGSEGV, SIG_DFL);  // the instruction runs again and ends the program
}

void watch_touches() {
  void* first[1];
  backtrace(first, 1);  // loads libraries now, not in the handler
  struct sigaction action {};
  action.sa_sigaction = tell_of_touch;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace

Memory& Memory::get() {
  static auto* memory = [] {
    watch_touches();
    return new Memory;
  }();
  return *memory;
}

bool Memory::Range::covers(size_t begin, size_t end) const {
  for (auto part = last_at(mapped, begin); part != mapped.end() && part->first <= begin; ++part) {
    if (part->second >= end) return true;
    begin = part->second;
  }
  return false;
}

Memory::Ranges::const_iterator Memory::find(const void* memory) const {
  const auto* address = static_cast<const std::byte*>(memory);
  const auto range = last_at(ranges_, address);
  const bool there = range != ranges_.end() && address < range->first + range->second.bytes;
  return there ? range : ranges_.end();
}

std::byte* Memory::reserve(size_t bytes) {
  std::byte* view = reserve_addresses(bytes);
  if (!view) return nullptr;
  std::byte* alias = reserve_addresses(bytes);
  if (!alias) {
    munmap(view, bytes);
    return nullptr;
  }
  std::lock_guard lock(mutex_);
  ranges_[view] = {bytes, alias, {}};
  if (!lowest_view.load() || view < lowest_view) lowest_view = view;
  if (view + bytes > highest_view) highest_view = view + bytes;
  return view;
}

bool Memory::release(std::byte* view, size_t bytes) {
  std::lock_guard lock(mutex_);
  const auto range = ranges_.find(view);
  if (range == ranges_.end() || range->second.bytes != bytes || !range->second.mapped.empty())
    return false;
  munmap(range->second.alias, bytes);
  munmap(view, bytes);
  ranges_.erase(range);
  return true;
}

bool Memory::map(std::byte* at, size_t bytes) {
  std::lock_guard lock(mutex_);
  const auto found = find(at);
  if (found == ranges_.end() || bytes > limit_ - mapped_) return false;
  Range& range = ranges_.at(found->first);
  const auto begin = static_cast<size_t>(at - found->first), end = begin + bytes;
  if (end > range.bytes) return false;
  const auto after = range.mapped.lower_bound(begin);
  if (after != range.mapped.end() && after->first < end) return false;
  if (after != range.mapped.begin() && std::prev(after)->second > begin) return false;
  if (mprotect(range.alias + begin, bytes, PROT_READ | PROT_WRITE) != 0) return false;
  range.mapped[begin] = end;
  mapped_ += bytes;
  std::memset(range.alias + begin, kFresh, bytes);
  return true;
}

bool Memory::unmap(std::byte* at, size_t bytes) {
  std::lock_guard lock(mutex_);
  const auto found = find(at);
  if (found == ranges_.end()) return false;
  Range& range = ranges_.at(found->first);
  const auto begin = static_cast<size_t>(at - found->first);
  const auto part = range.mapped.find(begin);
  if (part == range.mapped.end() || part->second != begin + bytes) return false;
  range.mapped.erase(part);
  madvise(range.alias + begin, bytes, MADV_DONTNEED);
  mprotect(range.alias + begin, bytes, PROT_NONE);
  mapped_ -= bytes;
  return true;
}

size_t Memory::mapped_bytes() const {
  std::lock_guard lock(mutex_);
  return mapped_;
}

size_t Memory::limit() const {
  std::lock_guard lock(mutex_);
  return limit_;
}

void Memory::set_limit(size_t bytes) {
  std::lock_guard lock(mutex_);
  limit_ = std::max(bytes, mapped_);
}

void Memory::pin(std::byte* memory, size_t bytes) {
  std::lock_guard lock(mutex_);
  pinned_.emplace(memory, std::make_shared<const size_t>(bytes));
}

Memory::Pinned Memory::unpin(std::byte* memory) {
  std::lock_guard lock(mutex_);
  const auto block = pinned_.extract(memory);
  return block ? block.mapped() : nullptr;
}

const Memory::Pinned* Memory::find_pinned(const void* memory, size_t bytes) const {
  const auto* address = static_cast<const std::byte*>(memory);
  const auto block = last_at(pinned_, address);
  const bool there = block != pinned_.end() && address + bytes <= block->first + *block->second;
  return there ? &block->second : nullptr;
}

bool Memory::is_pinned(const void* memory, size_t bytes) const {
  std::lock_guard lock(mutex_);
  return find_pinned(memory, bytes) != nullptr;
}

Memory::Pinned Memory::share(const void* memory) const {
  std::lock_guard lock(mutex_);
  const Pinned* block = find_pinned(memory, 1);
  return block ? *block : nullptr;
}

std::byte* Memory::alias(const void* memory, size_t bytes) const {
  std::lock_guard lock(mutex_);
  const auto range = find(memory);
  if (range == ranges_.end()) return nullptr;
  const auto begin = static_cast<size_t>(static_cast<const std::byte*>(memory) - range->first);
  WISP_CHECK(range->second.covers(begin, begin + std::max<size_t>(bytes, 1)),
             "emulated device: ", bytes, " bytes at ", memory, " are not memory: ", begin,
             " bytes into a range of addresses whose memory ends or was given back");
  return range->second.alias + begin;
}

void Memory::relocate(std::byte* argument, size_t bytes) const {
  for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, argument + at, sizeof word);
    if (!may_be_address(word)) continue;
    const auto* pointer =
        reinterpret_cast<const std::byte*>(word);  // NOLINT(performance-no-int-to-ptr)
    {
      std::lock_guard lock(mutex_);
      if (const auto range = find(pointer); range != ranges_.end()) {
        const std::byte* moved = range->second.alias + (pointer - range->first);
        std::memcpy(argument + at, &moved, sizeof moved);
        continue;
      }
    }
    WISP_CHECK(is_pinned(pointer, 1) || !is_host_memory(word),
               "emulated device: a kernel was given the address ", pointer,
               " of memory of the host's, word ", at / sizeof(uint64_t), " of ",
               bytes / sizeof(uint64_t), "; a device reads its own memory and pinned memory only");
  }
}

}  // namespace wisp::emulated
