// The slots of a step in total order: what travels together. Pure arithmetic on the cut and the
// methods' messages, the same on every rank, so timing changes no order on the wire. Any thread.
#pragma once

#include <span>
#include <vector>

#include "distributed/exchange/cut.h"

namespace wisp {

/// A unit's part in a step: the messages of its rounds; none if its gradients are dense.
struct UnitRounds {
  bool compressed = false;
  std::vector<Message> messages;  // indexed by round

  bool operator==(const UnitRounds&) const = default;
};

/// Messages and dense segments of one round of one bucket that travel together, by one collective
/// or several in turn (slot_wire.h).
struct Slot {
  int bucket = 0;
  int round = 0;
  Message message;         // kind, dtype, op and variable are common to all members
  std::vector<int> units;  // units whose payloads travel
  std::vector<int> dense;  // segments reduced in place (round 0, all_reduce of the arena's dtype)
};

/// Makes the slots in depth-first order: all rounds of a bucket come before the next bucket. Within
/// a round, messages of equal (kind, dtype, op, variable) form a group; groups are in the
/// order of their first member, dense segments first. A pair message travels alone, because its
/// peers differ by rank, and slots must not.
std::vector<Slot> make_slots(const Cut& cut, std::span<const UnitRounds> units, DType arena);

/// A hash that is equal on ranks with the same slots.
uint64_t hash_slots(std::span<const Slot> slots, uint64_t seed);

}  // namespace wisp
