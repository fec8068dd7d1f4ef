#include "tests/fuzz/checked_run.h"

#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <limits>
#include <new>

#include "tests/fuzz/fuzz_target.h"

namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// Bytes counted by the program's operator new, the only place where a format can ask for memory.
std::atomic<int64_t> live_bytes{0};
std::atomic<int64_t> limit_bytes{kNoLimit};

[[noreturn]] void found(const char* what, int64_t number = 0) {
  std::fprintf(stderr, what, static_cast<long long>(number));
  std::abort();
}

void* counted(void* memory) {
  live_bytes += static_cast<int64_t>(malloc_usable_size(memory));
  return memory;
}

void* allocate(size_t bytes, size_t alignment) {
  const int64_t limit = limit_bytes;
  if (limit != kNoLimit &&
      (bytes > static_cast<size_t>(limit) || live_bytes + static_cast<int64_t>(bytes) > limit)) {
    limit_bytes = kNoLimit;
    found("fuzz: finding: memory beyond its bound: %lld bytes asked for\n",
          static_cast<int64_t>(bytes));
  }
  void* memory =
      alignment > __STDCPP_DEFAULT_NEW_ALIGNMENT__
          ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
          : std::malloc(bytes > 0 ? bytes : 1);
  return memory ? counted(memory) : nullptr;
}

void* allocate_or_throw(size_t bytes, size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (!memory) throw std::bad_alloc();
  return memory;
}

void release(void* memory) {
  if (memory) live_bytes -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void* operator new(size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new[](size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, 1); }
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }

namespace wisp {
namespace {

/// Runs the target and returns the bytes that it did not free.
int64_t run(std::string_view input) {
  const int64_t before = live_bytes;
  limit_bytes = before + fuzz_memory(static_cast<int64_t>(input.size()));
  try {
    fuzz(input);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: finding: %s\n", error.what());
    std::abort();
  }
  limit_bytes = kNoLimit;
  return live_bytes - before;
}

}  // namespace

void checked_run(std::string_view input) {
  if (run(input) <= 0) return;
  // the first run may have made lasting objects, such as a locale or a stream's buffer
  const int64_t kept = run(input);
  if (kept > 0) found("fuzz: finding: a leak of %lld bytes\n", kept);
}

}  // namespace wisp
