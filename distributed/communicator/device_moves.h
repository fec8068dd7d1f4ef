// How what one rank owns of a collective is moved in the memory of a device that all ranks share:
// the bits of move_share(), as work of a stream.
#pragma once

#include <span>

#include "core/device/stream.h"
#include "distributed/communicator/collective.h"

namespace wisp {

/// Whether the memory of a call is of the device's `pool`. Throws Error if only some of it is.
bool lies_in(const MemoryPool& pool, const Call& call);

/// Ranks that one launch can add up.
constexpr int kMostDeviceRanks = 64;

/// move_share() in the order of `stream`, of whose device all memory is; what the ranks hand in is
/// there. At most kMostDeviceRanks calls.
void move_device_share(const Stream& stream, std::span<const Call> calls, int rank);

}  // namespace wisp
