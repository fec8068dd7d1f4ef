#include "tests/support/allocation_count.h"

#include <cstdlib>
#include <new>

namespace {

thread_local int64_t count = 0;

void* allocate(size_t bytes) {
  ++count;
  return std::malloc(bytes > 0 ? bytes : 1);
}

void* allocate(size_t bytes, std::align_val_t alignment) {
  ++count;
  const auto unit = static_cast<size_t>(alignment);
  return std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit);
}

void* checked(void* memory) {
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace wisp {

int64_t allocation_count() { return count; }

}  // namespace wisp

// The array forms call these.
void* operator new(size_t bytes) { return checked(allocate(bytes)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return checked(allocate(bytes, alignment));
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, alignment);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
