// What travels when: the total order of a step's collectives. Pure arithmetic over the plan and the
// methods' messages; every rank computes the same schedule, so wire order never depends on timing.
#pragma once

#include <span>
#include <vector>

#include "distributed/exchange/bucket.h"

namespace wisp {

/// A unit's part in a step: its rounds' messages, or none if its gradients go dense.
struct UnitRounds {
  bool compressed = false;
  std::vector<Message> messages;  // by round

  bool operator==(const UnitRounds&) const = default;
};

/// One collective: the messages of one round of one bucket that can travel together.
struct Slot {
  int bucket = 0;
  int round = 0;
  Message message;         // kind, dtype, op, root, variable: the same for all members
  std::vector<int> units;  // members that encode
  std::vector<int> dense;  // segments reduced in place (round 0, all_reduce of the arena's dtype)
};

/// Depth first: all rounds of a bucket before the next bucket; within a round, groups of equal
/// (kind, dtype, op, root, variable) in the order of their first member, dense segments first. A
/// pair message travels alone: its peers differ by rank, the schedule must not.
std::vector<Slot> make_schedule(const Plan& plan, std::span<const UnitRounds> units, DType arena);

/// How many outlets `rank` fills for this message: one, one per destination of an all_to_all, or
/// none if it has nothing to say in this round.
int outlet_count(const Message& message, int rank, int workers);

/// Whether a header travels in front of a slot's payloads, once per destination. Sums have none: a
/// header cannot be added, and ranks compare the schedule's hash instead.
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

/// Equal on ranks with the same schedule.
uint64_t hash_schedule(std::span<const Slot> slots, uint64_t seed);

}  // namespace wisp
