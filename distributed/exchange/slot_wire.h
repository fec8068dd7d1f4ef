// One slot on its way: seals its payloads with a header, starts its collective, in
// two phases if sizes must travel first, checks and hands out what arrived. Belongs to the comm
// thread; one slot at a time, so all slots receive into the same memory.
#pragma once

#include <vector>

#include "core/device_words.h"
#include "core/parameter.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/unit_memory.h"

namespace wisp {

class SlotWire {
 public:
  /// What is reduced travels in pieces of `piece_bytes` to less than twice that, one after the
  /// other; whole if it is less, or if that is 0. `neighbours`, ascending, are the ranks that
  /// messages of that kind go to and come from. The references outlive this object.
  SlotWire(Communicator& communicator, Context& context, UnitMemory& memory,
           const FlatParameters& parameters, int64_t piece_bytes, std::vector<int> neighbours = {});

  /// Grows the memory to receive into to what the largest of these slots can bring.
  void fit(std::span<const Slot> slots, std::span<const UnitRounds> rounds);

  /// `slot` comes next, whose units are encoded in the order of the stream; it stays as it is until
  /// it is complete and decoded. Seals what it sends. True if there is something to seal.
  bool open(const Slot& slot, std::span<const UnitRounds> rounds, int64_t step);
  /// Starts it. One of Collective::none is complete at once.
  void start();
  bool active() const { return pending_ != nullptr; }
  /// The phase under way.
  Pending& pending() { return *pending_; }
  /// Finishes the phase under way (blocks if it is not ready). True if all is there, in the order
  /// of the stream; false if the next is on its way: behind the sizes the data, behind a piece the
  /// next one.
  bool advance();
  /// Then computes what check() compares. False if there is nothing to compare.
  bool inspect();
  /// When the stream has come to inspect(). Throws Error, naming step, bucket and sender, if what
  /// came is not what was sent.
  void check();

  /// Of the slot that was started last, once it is complete: its phases' bytes added up, from the
  /// begin of the first to the end of the last.
  const Transfer& transfer() const { return transfer_; }
  /// Time that its phases were on the wire.
  double wire_us() const { return wire_us_; }
  /// What this rank offered to it: payloads, their sizes and headers, dense segments.
  int64_t encoded_bytes() const { return encoded_bytes_; }
  /// The messages of the i-th of the slot's units, in rank order; one (from = -1) if they were
  /// summed.
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
  std::vector<Message> messages_;  // of the slot's units, with their own bytes, to and from
  std::vector<int> sources_;       // ranks that this one hears, ascending, itself included
  int64_t step_ = 0;
  bool sizes_phase_ = false;
  int64_t pieces_ = 1, piece_ = 0;  // of a reduction; the one under way
  Transfer transfer_;
  double wire_us_ = 0.0;
  int64_t encoded_bytes_ = 0;
  Tensor inlets_;                               // what other ranks send in one slot
  std::vector<uint32_t> sizes_out_, sizes_in_;  // [outlet][unit], [rank][unit]
  std::vector<ConstBytes> out_;  // [outlet][unit], a header with the first; or the sizes: [outlet]
  std::vector<Bytes> in_;        // [source][unit], a header with the first; or the sizes: [source]
  std::vector<Bytes> part_;      // of in_: a piece
  std::vector<std::byte*> fronts_;   // where headers are
  std::vector<ConstBytes> covered_;  // by their checksums: [front][unit]
  DeviceWords received_;             // a ReceivedHeader of each rank that this one hears
  std::vector<Payload> payloads_;
  PendingPtr pending_;  // last: others may use the memory above until it is gone
};

}  // namespace wisp
