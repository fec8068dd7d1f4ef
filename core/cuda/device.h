// CUDA devices and who uses them. A thread works on one device at a time, its current one.
#pragma once

#include "core/device.h"

namespace wisp::cuda {

/// Throws Error, saying what there is, unless the device exists and its driver works.
void check_device(Device device);

struct DeviceMemory {
  int64_t free = 0, total = 0;  // bytes
};
/// Of the calling thread's device.
DeviceMemory memory_of_current();

}  // namespace wisp::cuda
