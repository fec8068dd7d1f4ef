// Memory of CUDA devices, and pinned host memory for copies to them. Any thread.
#pragma once

#include <cstddef>
#include <memory>

#include "core/device/address_range.h"
#include "core/device/device.h"

namespace wisp::cuda {

/// An address range of a device. Its memory is mapped as the range grows. Nothing may use the
/// memory when the range is destroyed.
std::unique_ptr<AddressRange> reserve_addresses(Device device, int64_t capacity);

/// Pinned host memory, for copies by devices. Throws Error if there is none.
std::shared_ptr<std::byte> make_pinned(int64_t bytes);

}  // namespace wisp::cuda
