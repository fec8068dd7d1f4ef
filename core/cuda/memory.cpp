#include "core/cuda/memory.h"

#include <cuda.h>

#include <vector>

#include "core/cuda/check.h"
#include "core/cuda/device.h"

namespace wisp::cuda {
namespace {

constexpr unsigned kOldestDriver = 12000;  // has all calls used here

/// Looks up a call of the driver when it is needed. A program linked against the driver would not
/// start on a machine without one.
template <class Function>
Function* driver(const char* name, Function*) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  WISP_CUDA_CHECK(cudaGetDriverEntryPointByVersion(name, &function, kOldestDriver, 0, &found));
  WISP_CHECK(function && found == cudaDriverEntryPointSuccess, "the CUDA driver has no ", name,
             "; it is older than this program");
  return reinterpret_cast<Function*>(function);
}

struct Driver {
// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a member's name
#define WISP_DRIVER(name) \
  decltype(&::name) name = driver(#name, static_cast<decltype(&::name)>(nullptr))
  WISP_DRIVER(cuGetErrorString);
  WISP_DRIVER(cuMemAddressFree);
  WISP_DRIVER(cuMemAddressReserve);
  WISP_DRIVER(cuMemCreate);
  WISP_DRIVER(cuMemGetAllocationGranularity);
  WISP_DRIVER(cuMemMap);
  WISP_DRIVER(cuMemRelease);
  WISP_DRIVER(cuMemSetAccess);
  WISP_DRIVER(cuMemUnmap);
#undef WISP_DRIVER
  // NOLINTEND(bugprone-macro-parentheses)

  void check(CUresult status, const char* call) const {
    if (status == CUDA_SUCCESS) return;
    const char* text = "unknown error";
    cuGetErrorString(status, &text);
    if (status == CUDA_ERROR_OUT_OF_MEMORY) throw OutOfMemory(concat(call, ": ", text));
    throw Error(concat(call, ": ", text));
  }
};

class DeviceRange final : public AddressRange {
 public:
  DeviceRange(Device device, int64_t capacity) {
    what_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    what_.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.index};
    size_t granularity = 0;
    driver_.check(driver_.cuMemGetAllocationGranularity(&granularity, &what_,
                                                        CU_MEM_ALLOC_GRANULARITY_MINIMUM),
                  "cuMemGetAllocationGranularity");
    granularity_ = static_cast<int64_t>(granularity);
    capacity_ = (capacity + granularity_ - 1) / granularity_ * granularity_;
    driver_.check(driver_.cuMemAddressReserve(&begin_, static_cast<size_t>(capacity_), 0, 0, 0),
                  "cuMemAddressReserve");
  }
  ~DeviceRange() override {
    CUdeviceptr at = begin_;
    for (const Part& part : parts_) {
      driver_.cuMemUnmap(at, part.bytes);
      driver_.cuMemRelease(part.memory);
      at += part.bytes;
    }
    driver_.cuMemAddressFree(begin_, static_cast<size_t>(capacity_));
  }

  std::byte* begin() const override {
    return reinterpret_cast<std::byte*>(begin_);  // NOLINT(performance-no-int-to-ptr): CUDA's type
  }
  int64_t granularity() const override { return granularity_; }

  bool grow(int64_t bytes) override {
    if (bytes > capacity_ - bytes_) return false;
    Part part{{}, static_cast<size_t>(bytes)};
    const CUresult made = driver_.cuMemCreate(&part.memory, part.bytes, &what_, 0);
    if (made == CUDA_ERROR_OUT_OF_MEMORY) return false;
    driver_.check(made, "cuMemCreate");
    const CUdeviceptr at = begin_ + static_cast<CUdeviceptr>(bytes_);
    const CUmemAccessDesc access{what_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUresult mapped = driver_.cuMemMap(at, part.bytes, 0, part.memory, 0);
    if (mapped != CUDA_SUCCESS) driver_.cuMemRelease(part.memory);
    driver_.check(mapped, "cuMemMap");
    parts_.push_back(part);
    bytes_ += bytes;
    driver_.check(driver_.cuMemSetAccess(at, part.bytes, &access, 1), "cuMemSetAccess");
    return true;
  }

 private:
  struct Part {
    CUmemGenericAllocationHandle memory;
    size_t bytes;
  };

  const Driver driver_;
  CUmemAllocationProp what_{};
  int64_t granularity_ = 0, capacity_ = 0;
  CUdeviceptr begin_ = 0;
  std::vector<Part> parts_;  // consecutive in the range
};

}  // namespace

std::unique_ptr<AddressRange> reserve_addresses(Device device, int64_t capacity) {
  check_device(device);  // before any call to a driver that may be missing
  use(device);
  return std::make_unique<DeviceRange>(device, capacity);
}

std::shared_ptr<std::byte> make_pinned(int64_t bytes) {
  void* memory = nullptr;
  WISP_CUDA_CHECK(cudaHostAlloc(&memory, static_cast<size_t>(bytes), cudaHostAllocDefault));
  return {static_cast<std::byte*>(memory), [](std::byte* owned) { cudaFreeHost(owned); }};
}

}  // namespace wisp::cuda
