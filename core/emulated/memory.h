// The memory of the emulated devices. An address range is mapped twice. The program gets the
// addresses of the view, and nothing may access them, so a host access faults. Tasks on the device
// access the memory through the alias. Pinned memory is ordinary memory that is registered here.
// Any thread.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

namespace wisp::emulated {

constexpr int kFresh = 0xfb;  // byte that fills new memory: floats of -2.6e36, integers far below 0

class Memory {
 public:
  /// The memory of the process, as with a real device. It is never destroyed, because streams may
  /// outlive everything.
  static Memory& get();

  /// Reserves a view of `bytes` bytes with nothing mapped; null if no addresses are left.
  std::byte* reserve(size_t bytes);
  /// Releases a view. Returns false unless reserve() gave it and nothing is mapped.
  bool release(std::byte* view, size_t bytes);
  /// Maps memory into a view. Returns false if a part is mapped already or not reserved, or if the
  /// memory left below limit() is too small.
  bool map(std::byte* at, size_t bytes);
  bool unmap(std::byte* at, size_t bytes);
  size_t mapped_bytes() const;
  size_t limit() const;
  /// Sets the memory of all devices together, for tests of running out of it.
  void set_limit(size_t bytes);

  /// A pinned block's entry, its bytes. Each copy under way shares the entry.
  using Pinned = std::shared_ptr<const size_t>;
  void pin(std::byte* memory, size_t bytes);
  /// Forgets a pinned block and returns its entry; null if it is not pinned.
  Pinned unpin(std::byte* memory);
  bool is_pinned(const void* memory, size_t bytes) const;
  /// The entry of the pinned block with this address, for a copy; null if there is none.
  Pinned share(const void* memory) const;

  /// The address that a task uses for these bytes of a view; null if they are not in a view. Throws
  /// Error if they are in a view but not all mapped.
  std::byte* alias(const void* memory, size_t bytes) const;
  /// Replaces each word of a task's argument that points into a view by its alias. Throws Error for
  /// a word that points to unpinned host memory, because a real device could not read it. A number
  /// that equals such an address is treated as one.
  void relocate(std::byte* argument, size_t bytes) const;

 private:
  struct Range {
    size_t bytes = 0;
    std::byte* alias = nullptr;
    std::map<size_t, size_t> mapped;  // begins and ends, from the view's begin

    bool covers(size_t begin, size_t end) const;
  };
  using Ranges = std::map<const std::byte*, Range>;  // key: begin of the view

  Ranges::const_iterator find(const void* memory) const;
  const Pinned* find_pinned(const void* memory, size_t bytes) const;

  mutable std::mutex mutex_;
  Ranges ranges_;
  std::map<const std::byte*, Pinned> pinned_;
  size_t mapped_ = 0;
  size_t limit_ = size_t{64} << 30;
};

}  // namespace wisp::emulated
