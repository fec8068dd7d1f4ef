// CUDA devices and who uses them. A thread works on one device at a time, its current one.
#pragma once

#include "core/device.h"

namespace wisp::cuda {

/// Throws Error, saying what there is, unless the device exists and its driver works.
void check_device(Device device);

}  // namespace wisp::cuda
