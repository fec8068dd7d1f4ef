// CUDA devices and who uses them. A thread works on one device at a time, its current one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/device.h"

namespace wisp::cuda {

/// Why the device cannot be worked on, and what would help: there is no driver, or an old one, or
/// no such device. Empty if nothing is in the way.
std::string obstacle(Device device);

/// Throws Error, with the obstacle, unless the device exists and its driver works.
void check_device(Device device);

struct DeviceFacts {
  Device device;
  std::string name;
  std::string capability;       // compute capability, "9.0"
  std::string driver, runtime;  // the newest CUDA that the driver knows, this program's: "13.0"
  int64_t free_bytes = 0, total_bytes = 0;
  std::string failure;  // why its memory is not known; empty: it is
};

/// All devices that the driver shows; none if obstacle() has the reason. Each becomes the calling
/// thread's current one in turn.
std::vector<DeviceFacts> list_devices();

}  // namespace wisp::cuda
