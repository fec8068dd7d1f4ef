// The meaning of a Message for each rank, by its kind: the number of outlets, the senders that a
// rank hears, and the bytes sent. Pure arithmetic with the same result on every rank; any thread.
#pragma once

#include <span>

#include "compression/message.h"

namespace wisp {

/// Number of outlets that a rank fills for its message: one, one per destination of an all_to_all,
/// or none if it sends nothing in this round.
int outlet_count(const Message& message, int workers);

/// Whether `rank`, the owner of this message, receives the payload of rank `from`, perhaps itself.
/// A sum has no sender. `neighbours`, ascending, are the rank's for Collective::neighbours.
bool hears(const Message& message, int rank, int from, std::span<const int> neighbours = {});

/// Index of the sender's outlet whose payload `rank` receives.
size_t outlet_for(const Message& message, int rank);

/// Whether a header travels in front of a slot's payloads, once per destination. A sum has none,
/// because headers cannot be added; ranks compare the hash of the slots instead.
bool has_header(Collective kind);

/// Bytes that a rank sends for `bytes` of message, by the table of the communicator's algorithm
/// (communicator/collective.h). For Collective::neighbours it counts one copy; the caller
/// multiplies by the number of neighbours.
double bytes_on_wire(Collective kind, double bytes, int workers);

/// Bytes that a rank sends for its messages, including sizes and headers.
double bytes_on_wire(std::span<const Message> messages, int workers);

/// The guard against compression that costs more than it saves: whether `bytes`, which a rank sends
/// for messages with their sizes and headers, are more than a dense all-reduce of `raw_bytes`
/// sends.
bool is_more_than_dense(double bytes, int64_t raw_bytes, int workers);

}  // namespace wisp
