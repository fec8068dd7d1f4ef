// The memory of the emulated devices. A range of addresses is there twice: the view, whose
// addresses a program gets and nobody may touch, ever, so that a host that does faults; and the
// alias, through which tasks on the device work. Pinned memory is ordinary memory that is known
// here. Any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace wisp::emulated {

constexpr int kFresh = 0xfb;  // what new memory holds: floats of -2.6e36, integers far below 0

class Memory {
 public:
  /// Of the process, as a real device's is. Destroyed never: streams may outlive everything.
  static Memory& get();

  /// A view of `bytes` that nothing is mapped to yet; null if there are no addresses left.
  std::byte* reserve(size_t bytes);
  /// False unless that is what reserve() gave, with nothing mapped.
  bool release(std::byte* view, size_t bytes);
  /// False if a part of it is mapped already, or not reserved, or there are not so many bytes left
  /// below limit().
  bool map(std::byte* at, size_t bytes);
  bool unmap(std::byte* at, size_t bytes);
  size_t mapped_bytes() const;
  size_t limit() const;
  /// Memory that all devices have together: for tests of what happens without.
  void set_limit(size_t bytes);

  struct Pinned {
    size_t bytes = 0;
    std::shared_ptr<std::atomic<int>> copies;
  };
  bool pin(std::byte* memory, size_t bytes);
  /// What was known of it; nothing if it is not pinned.
  std::optional<Pinned> unpin(std::byte* memory);
  /// The number of copies of the block under way, for who starts one; null if it is not pinned.
  std::shared_ptr<std::atomic<int>> copies_of(const void* memory) const;
  bool is_pinned(const void* memory, size_t bytes) const;

  /// What a task uses for these bytes of a view; null if they are not a device's. Throws Error if
  /// they are, but not all of them are mapped.
  std::byte* alias(const void* memory, size_t bytes) const;
  /// Turns each word of a task's argument that points into a view into its alias. Throws Error for
  /// one that points to memory of the host's which is not pinned: a real device could not read it.
  /// A number that happens to be such an address is taken for one.
  void relocate(std::byte* argument, size_t bytes) const;

 private:
  struct Range {
    size_t bytes = 0;
    std::byte* alias = nullptr;
    std::map<size_t, size_t> mapped;  // begins and ends, from the view's begin

    bool covers(size_t begin, size_t end) const;
  };
  using Ranges = std::map<const std::byte*, Range>;  // by view

  Ranges::const_iterator find(const void* memory) const;
  const Pinned* find_pinned(const void* memory, size_t bytes) const;

  mutable std::mutex mutex_;
  Ranges ranges_;
  std::map<const std::byte*, Pinned> pinned_;
  size_t mapped_ = 0;
  size_t limit_ = size_t{64} << 30;
};

}  // namespace wisp::emulated
