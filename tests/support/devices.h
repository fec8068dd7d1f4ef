// The devices that a test can use here.
#pragma once

#include "core/device.h"

namespace wisp {

/// The first device that is not the CPU: an emulated one, or in a build with CUDA a real one.
inline Device first_device() { return {Device::Kind::cuda, 0}; }

}  // namespace wisp
