// What there is to train on, for the command line.
#pragma once

#include <string>
#include <vector>

#include "core/cuda/device.h"

namespace wisp {

struct DeviceList {
  std::string backend, numerics;           // the CPU's
  std::string kind;                        // of the others: cuda or emulated
  std::vector<cuda::DeviceFacts> devices;  // all GPUs, or the emulated one
  std::string no_cuda;                     // why device=cuda is refused; empty: it is not
};

DeviceList list_devices();

/// A line for each device, and for CUDA if it cannot be trained on.
std::string device_table(const DeviceList& list);
/// The same as one JSON object; memory in bytes.
std::string device_json(const DeviceList& list);

}  // namespace wisp
