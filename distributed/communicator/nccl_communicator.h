// The communicator of ranks that have a GPU each, by NCCL: the one part of Wisp that knows it.
// Collectives on a device's memory are NCCL's, in the order of the rank's stream; those on the
// host's are those of a communicator beside it. There the ranks first agree on what they call, and
// submit then: a round trip for each collective, because what does not fit, once submitted, hangs
// devices until each rank aborts. Sums are in NCCL's order, and those of f16 and bf16 rounded at
// each hop, so last bits may differ from the other communicators'; a reduction is cut into the same
// slices on all ranks. Counted bytes are those of the other communicators, not of NCCL's rings.
// Used by its rank's comm thread.
#pragma once

#include <memory>

#include "distributed/communicator/communicator.h"

namespace wisp {

/// All ranks make theirs together. `stream` is the rank's, of a device that no other rank has,
/// `pool` where that device's memory comes from; `host` is left to this communicator, and all
/// outlive it. A collective that takes more than `timeout_s` after all had come, or of which NCCL
/// says that it failed, ends all ranks'. Throws Error if NCCL refuses; null in a build without.
std::unique_ptr<Communicator> join_nccl(Communicator& host, const Stream& stream,
                                        const MemoryPool& pool, double timeout_s);

}  // namespace wisp
