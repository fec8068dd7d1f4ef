// What a Message means to the ranks, by its kind: who says how much, who hears whom, and how many
// bytes that is. Pure arithmetic; every rank computes the same.
#pragma once

#include <span>

#include "compression/compressor.h"

namespace wisp {

/// How many outlets `rank` fills for its message: one, one per destination of an all_to_all, or
/// none if it has nothing to say in this round.
int outlet_count(const Message& message, int rank, int workers);

/// Whether `rank`, whose message this is, hears by itself what rank `from` says, which may be its
/// own. A message that is summed is heard from nobody. `neighbours`, ascending, are the rank's, for
/// messages of that kind.
bool hears(const Message& message, int rank, int from, std::span<const int> neighbours = {});

/// Which of a sender's outlets `rank` hears.
size_t outlet_for(const Message& message, int rank);

/// Whether a header travels in front of a slot's payloads, once per destination. Sums have none: a
/// header cannot be added, and ranks compare the slots' hash instead.
bool has_header(Collective kind);

/// The bytes a rank sends for `bytes` of message among `workers`, by the communicator's algorithms:
/// 2 (N-1)/N of an all-reduce, N-1 copies of a gathered message.
double bytes_on_wire(Collective kind, double bytes, int workers);

/// What a rank sends of these messages, which are its own, sizes included; of a broadcast, what its
/// root sends.
double bytes_on_wire(std::span<const Message> messages, int workers);

/// The guard of "compression never hurts by accident": whether these messages send more than a
/// dense all-reduce of `raw_bytes` would, with sizes and headers, as if the unit had its slots to
/// itself.
bool sends_more_than_dense(std::span<const Message> messages, int64_t raw_bytes, int workers);

}  // namespace wisp
