#include "tests/support/allocation_count.h"

#include <cstdlib>
#include <new>

namespace {

thread_local int64_t count = 0;

void* counted(void* memory) {
  ++count;
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

namespace wisp {

int64_t allocation_count() { return count; }

}  // namespace wisp

// The library's other forms call these.
void* operator new(size_t bytes) { return counted(std::malloc(bytes > 0 ? bytes : 1)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  return counted(std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
