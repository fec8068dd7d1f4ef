// Memory of CUDA devices, and of the host for copies to them.
#pragma once

#include <cstddef>
#include <memory>

#include "core/device/address_range.h"
#include "core/device/device.h"

namespace wisp::cuda {

/// Addresses of a device, whose memory is mapped as the range grows. Nothing may use the memory any
/// more when it is destroyed.
std::unique_ptr<AddressRange> reserve_addresses(Device device, int64_t capacity);

/// Memory of the host's that devices copy from and to. Throws Error if there is none.
std::shared_ptr<std::byte> make_pinned(int64_t bytes);

}  // namespace wisp::cuda
