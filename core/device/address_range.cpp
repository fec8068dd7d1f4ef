#include "core/device/address_range.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "core/cuda/memory.h"

namespace wisp {
namespace {

class HostRange final : public AddressRange {
 public:
  /// `begin`: addresses without memory, which become this object's.
  HostRange(void* begin, int64_t capacity)
      : begin_(static_cast<std::byte*>(begin)), capacity_(capacity) {
    // advice only: scattered reads miss the TLB less often on huge pages
    madvise(begin, static_cast<size_t>(capacity), MADV_HUGEPAGE);
  }
  ~HostRange() override { munmap(begin_, static_cast<size_t>(capacity_)); }

  std::byte* begin() const override { return begin_; }
  int64_t granularity() const override { return int64_t{1} << 20; }
  bool grow(int64_t bytes) override {
    if (bytes > capacity_ - bytes_) return false;
    if (mprotect(begin_ + bytes_, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE) != 0)
      return false;
    bytes_ += bytes;
    return true;
  }

 private:
  std::byte* const begin_;
  const int64_t capacity_;
};

}  // namespace

std::unique_ptr<AddressRange> reserve_addresses(Device device, int64_t capacity) {
  if (device.is_cuda()) return cuda::reserve_addresses(device, capacity);
  void* begin = mmap(nullptr, static_cast<size_t>(capacity), PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return begin == MAP_FAILED ? nullptr : std::make_unique<HostRange>(begin, capacity);
}

std::optional<int64_t> address_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace wisp
