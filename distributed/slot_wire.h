// One slot of a schedule on its way: starts its collective, in two phases if sizes must travel
// first, and hands out what arrived. Belongs to the comm thread; one slot at a time.
#pragma once

#include <vector>

#include "core/parameter.h"
#include "distributed/communicator.h"
#include "distributed/unit_memory.h"

namespace wisp {

class SlotWire {
 public:
  SlotWire(Communicator& communicator, UnitMemory& memory, const FlatParameters& parameters);

  void start(const Slot& slot, std::span<const UnitRounds> rounds);
  bool active() const { return pending_ != nullptr; }
  bool ready() { return pending_->ready(); }
  /// When ready() becomes true, on the clock of now_us(); infinity while that is not known.
  double ready_at_us() { return pending_->ready_at_us(); }
  /// Finishes the phase under way (blocks if it is not ready). True if the slot is complete; false
  /// if the sizes have come and the data is on its way.
  bool advance();

  /// Of the slot that completed last: its phases' bytes added up, on the wire from begin to end.
  const Transfer& transfer() const { return transfer_; }
  /// What this rank put on the wire in it: payloads, sizes, dense segments.
  int64_t encoded_bytes() const { return encoded_bytes_; }
  /// The messages of the i-th of the slot's units, in rank order; one (from = -1) if they were
  /// summed.
  std::span<const Payload> payloads(size_t i);

 private:
  int64_t arrived_bytes(size_t i, int from) const;
  PendingPtr start_sizes();
  PendingPtr start_data();
  PendingPtr reduce();
  PendingPtr gather();
  PendingPtr spread();
  PendingPtr pair();

  Communicator& communicator_;
  UnitMemory& memory_;
  const FlatParameters& parameters_;
  const int workers_;
  const Slot* slot_ = nullptr;
  std::vector<Message> messages_;  // of the slot's units, with their own bytes, to and from
  bool sizes_phase_ = false;
  PendingPtr pending_;
  Transfer transfer_;
  int64_t encoded_bytes_ = 0;
  std::vector<uint32_t> sizes_out_, sizes_in_;  // [destination or 0][unit], [from][unit]
  std::vector<ConstBytes> out_;
  std::vector<Bytes> in_;
  std::vector<Payload> payloads_;
};

}  // namespace wisp
