// The wire of one slot. It seals the payloads with a header and starts the slot's collective, in
// two phases if sizes must travel first. It checks the received payloads and hands them out. One
// slot at a time, so all slots receive into the same memory. Belongs to the comm thread.
#pragma once

#include <vector>

#include "core/device_words.h"
#include "core/parameter.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/unit_memory.h"

namespace wisp {

class SlotWire {
 public:
  /// A reduction travels in pieces, one after the other, each of `piece_bytes` to less than twice
  /// that. It travels whole if it is smaller, or if `piece_bytes` is 0. `neighbours`, ascending,
  /// are the peers of Collective::neighbours. The references outlive this object.
  SlotWire(Communicator& communicator, Context& context, UnitMemory& memory,
           const FlatParameters& parameters, int64_t piece_bytes, std::vector<int> neighbours = {});

  /// Grows the receive memory to the largest slot.
  void fit(std::span<const Slot> slots, std::span<const UnitRounds> rounds);

  /// Makes `slot` the current one, after its units were encoded in the order of the stream. The
  /// slot must not change until it is complete and decoded. Seals the payloads. Returns whether the
  /// slot has headers.
  bool open(const Slot& slot, std::span<const UnitRounds> rounds, int64_t step);
  /// Starts the current slot. A slot of Collective::none is complete at once.
  void start();
  bool active() const { return pending_ != nullptr; }
  /// The collective of the current phase.
  Pending& pending() { return *pending_; }
  /// Finishes the current phase; blocks if it is not ready. Returns true if all data has arrived,
  /// in the order of the stream, and false if another phase has started: the data after the sizes,
  /// or the next piece.
  bool advance();
  /// Computes the values that check() compares, after advance() returned true. Returns false if
  /// there is nothing to check.
  bool inspect();
  /// Checks the values of inspect(), which the stream must have passed. Throws Error with step,
  /// bucket and sender if the received data is not what was sent.
  void check();

  /// The transfer of the last started slot, once it is complete: the bytes of all phases, and the
  /// time from the begin of the first to the end of the last.
  const Transfer& transfer() const { return transfer_; }
  /// Time on the wire of the last slot's phases.
  double wire_us() const { return wire_us_; }
  /// Bytes that this rank offered to the last slot: payloads, sizes, headers and dense segments.
  int64_t encoded_bytes() const { return encoded_bytes_; }
  /// The messages to the slot's i-th unit, in rank order; one (from = -1) if they were summed.
  std::span<const Payload> payloads(size_t i);

 private:
  void seal();
  uint32_t slot_word(int from) const;
  PendingPtr start_sizes();
  PendingPtr start_data();
  PendingPtr carry();
  PendingPtr reduce();
  PendingPtr reduce_piece();
  int64_t arrived_bytes(size_t i, int from) const;
  Payload arrived(size_t source, size_t i) const;
  void list_sources(const Message& message);
  std::vector<Exchange> with_neighbours() const;
  int outlets_per_unit() const;
  size_t own_outlet() const;

  Communicator& communicator_;
  Context& context_;
  UnitMemory& memory_;
  const FlatParameters& parameters_;
  const int workers_;
  const int64_t piece_bytes_;
  const std::vector<int> neighbours_;
  const Slot* slot_ = nullptr;
  std::vector<Message> messages_;  // messages of the slot's units on this rank
  std::vector<int> sources_;       // ranks that this one hears, ascending, itself included
  int64_t step_ = 0;
  bool sizes_phase_ = false;
  int64_t pieces_ = 1, piece_ = 0;  // pieces of a reduction; the current one
  Transfer transfer_;
  double wire_us_ = 0.0;
  int64_t encoded_bytes_ = 0;
  Tensor inlets_;                               // payloads received from other ranks in one slot
  std::vector<uint32_t> sizes_out_, sizes_in_;  // [outlet][unit], [rank][unit]
  std::vector<ConstBytes> out_;  // [outlet][unit], a header with the first; in the sizes phase
                                 // [outlet]
  std::vector<Bytes> in_;    // [source][unit], a header with the first; in the sizes phase [source]
  std::vector<Bytes> part_;  // slices of in_ that form the current piece
  std::vector<std::byte*> fronts_;   // addresses of headers
  std::vector<ConstBytes> covered_;  // payloads covered by each header's checksum: [front][unit]
  DeviceWords received_;             // a ReceivedHeader of each rank that this one hears
  std::vector<Payload> payloads_;
  PendingPtr pending_;  // last: other ranks may use the memory above until it is gone
};

}  // namespace wisp
