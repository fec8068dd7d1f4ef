// CUDA devices and their availability. A thread works on one device at a time, its current one. Any
// thread may ask.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace wisp::cuda {

/// The reason why a device cannot be used, and the remedy: no driver, an old driver, or no such
/// device. Empty if the device can be used.
std::string obstacle(Device device);

/// Throws Error with the obstacle unless the device exists and its driver works.
void check_device(Device device);

struct DeviceFacts {
  Device device;
  std::string name;
  std::string capability;       // compute capability, "9.0"
  std::string driver, runtime;  // newest CUDA of the driver, CUDA of this program: "13.0"
  int64_t free_bytes = 0, total_bytes = 0;
  std::string failure;  // reason why the memory is unknown; empty if it is known
};

/// All devices that the driver shows; none if obstacle() has a reason. The call makes each the
/// calling thread's current device in turn.
std::vector<DeviceFacts> list_devices();

}  // namespace wisp::cuda
