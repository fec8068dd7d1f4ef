// A list of the devices that a run can train on, for the command line. One thread.
#pragma once

#include <string>
#include <vector>

#include "core/cuda/device.h"

namespace wisp {

struct DeviceList {
  std::string backend, numerics;           // the CPU's
  std::string kind;                        // kind of the other devices: cuda or emulated
  std::vector<cuda::DeviceFacts> devices;  // all GPUs, or the emulated one
  std::string no_cuda;                     // why device=cuda is refused; empty: it works
};

DeviceList list_devices();

/// One line per device, and one for CUDA if it cannot be used.
std::string device_table(const DeviceList& list);
/// The list as one JSON object; memory in bytes.
std::string device_json(const DeviceList& list);

}  // namespace wisp
