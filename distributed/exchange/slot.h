// What travels when: the total order of a step's collectives. Pure arithmetic over the cut and the
// methods' messages; every rank computes the same slots, so wire order never depends on timing.
#pragma once

#include <span>
#include <vector>

#include "distributed/exchange/cut.h"

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
/// pair message travels alone: its peers differ by rank, the slots must not.
std::vector<Slot> make_slots(const Cut& cut, std::span<const UnitRounds> units, DType arena);

/// Equal on ranks with the same slots.
uint64_t hash_slots(std::span<const Slot> slots, uint64_t seed);

}  // namespace wisp
