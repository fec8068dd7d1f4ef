#include "core/device/address_range.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "core/cuda/memory.h"

namespace wisp {
namespace {

class HostRange final : public AddressRange {
 public:
  explicit HostRange(int64_t capacity) : capacity_(capacity) {
    void* range = mmap(nullptr, static_cast<size_t>(capacity), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    WISP_CHECK(range != MAP_FAILED, "cannot reserve ", capacity,
               " bytes of addresses: ", std::strerror(errno));
    begin_ = static_cast<std::byte*>(range);
    // advice only: scattered reads miss the TLB less often on huge pages
    madvise(range, static_cast<size_t>(capacity), MADV_HUGEPAGE);
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
  std::byte* begin_ = nullptr;
  const int64_t capacity_;
};

}  // namespace

std::unique_ptr<AddressRange> reserve_addresses(Device device, int64_t capacity) {
  if (device.is_cuda()) return cuda::reserve_addresses(device, capacity);
  return std::make_unique<HostRange>(capacity);
}

}  // namespace wisp
