#include "core/device/device_work.h"

#include <atomic>

namespace wisp {
namespace {

std::atomic<int64_t> kernels{0}, calls{0}, copies{0}, waits{0}, fallbacks{0};

}  // namespace

DeviceWork device_work() { return {kernels, calls, copies, waits, fallbacks}; }

void count_device_work(const DeviceWork& more) {
  kernels += more.kernels;
  calls += more.calls;
  copies += more.copies;
  waits += more.waits;
  fallbacks += more.fallbacks;
}

}  // namespace wisp
