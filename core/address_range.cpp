#include "core/address_range.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/error.h"

namespace wisp {

AddressRange::AddressRange(int64_t capacity) : capacity_(capacity) {
  void* range = mmap(nullptr, static_cast<size_t>(capacity), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  WISP_CHECK(range != MAP_FAILED, "cannot reserve ", capacity,
             " bytes of addresses: ", std::strerror(errno));
  begin_ = static_cast<std::byte*>(range);
  // advice only: scattered reads miss the TLB less often on huge pages
  madvise(range, static_cast<size_t>(capacity), MADV_HUGEPAGE);
}

AddressRange::~AddressRange() { munmap(begin_, static_cast<size_t>(capacity_)); }

bool AddressRange::grow(int64_t bytes) {
  if (bytes > capacity_ - bytes_) return false;
  if (mprotect(begin_ + bytes_, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE) != 0)
    return false;
  bytes_ += bytes;
  return true;
}

}  // namespace wisp
