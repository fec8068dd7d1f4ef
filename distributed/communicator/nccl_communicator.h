// The communicator of ranks that have a GPU each, by NCCL (nccl_connection.h).
// Collectives on device memory run in NCCL, in the order of the rank's stream; those on host memory
// run in a host communicator beside it. Through the host communicator, the ranks first agree on a
// call, and then submit it. This costs a round trip per collective, but a submitted call that does
// not fit would hang devices until each rank aborts. NCCL sums in its own order, and rounds f16 and
// bf16 at each hop, so the last bits may differ from other communicators. A reduction is cut into
// the same slices on all ranks. Byte counts are those of the other communicators, not of NCCL's
// rings. Used by its rank's comm thread.
#pragma once

#include <memory>

#include "distributed/communicator/communicator.h"

namespace wisp {

/// Makes this rank's communicator; all ranks call it together. `stream` is the rank's, on a device
/// that no other rank uses; `pool` owns that device's memory. `host` belongs to this communicator
/// from now on. All outlive it. A collective ends on all ranks if it takes more than `timeout_s`
/// seconds after the last rank came, or if NCCL reports a failure. Throws Error if NCCL refuses;
/// null in a program without it.
std::unique_ptr<Communicator> join_nccl(Communicator& host, const Stream& stream,
                                        const MemoryPool& pool, double timeout_s);

}  // namespace wisp
