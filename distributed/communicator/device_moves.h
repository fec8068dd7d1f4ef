// The movement of one rank's part of a collective in the memory of a device that all ranks share:
// work of a stream, with the bits of move_share(). Any thread.
#pragma once

#include <span>

#include "core/device/stream.h"
#include "distributed/communicator/collective.h"

namespace wisp {

/// Whether a call's memory lies in the device's `pool`. Throws Error if only a part of it does.
bool lies_in(const MemoryPool& pool, const Call& call);

/// The most ranks that one launch can sum.
constexpr int kMostDeviceRanks = 64;

/// move_share() in the order of `stream`. All memory is on its device, and the ranks' data is
/// there. At most kMostDeviceRanks calls.
void move_device_share(const Stream& stream, std::span<const Call> calls, int rank);

}  // namespace wisp
