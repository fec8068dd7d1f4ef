// The wire of one slot. It seals the payloads with a header and starts the slot's collective, in
// two phases if sizes must travel first. It checks the received payloads and hands them out. One
// slot at a time, so all slots receive into the same memory. Belongs to the comm thread.
#pragma once

#include <vector>

#include "core/device_words.h"
#include "core/parameter.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/pieces.h"
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

  /// Makes `slot` the current one, after its units were encoded in the order of the stream. It must
  /// not change until it is decoded. Seals the payloads. Returns whether the slot has headers.
  bool open(const Slot& slot, std::span<const UnitRounds> rounds, int64_t step);
  /// Starts the current slot. A slot of Collective::none is complete at once.
  void start() { pending_ = next_phase(); }
  bool active() const { return pending_ != nullptr; }
  /// The collective of the current phase.
  Pending& pending() { return *pending_; }
  /// Finishes the current phase; blocks if it is not ready. Returns true if all data has arrived,
  /// in the order of the stream, and false if another phase (the data, the next piece) has started.
  bool advance();
  /// Computes what check() compares, after advance() returned true. Returns false if there is
  /// nothing to check.
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
  /// The slot under way, as this rank sees it.
  struct OpenSlot {
    const Slot* slot = nullptr;
    int64_t step = 0;
    int phases = 0;                 // phases that have begun
    std::vector<Message> messages;  // messages of the slot's units
    std::vector<Bytes> offered;     // dense segments, then payloads: [outlet][unit]
    std::vector<int> sources;       // ranks that this one hears, ascending, itself included
    size_t own = 0;                 // index in `offered` of the message to this rank itself
  };
  /// The first phase of variable messages: the sizes of the payloads.
  struct Sizes {
    std::vector<uint32_t> told, heard;  // [outlet][unit], [source][unit]
    std::vector<ConstBytes> out;        // slices of `told`: [outlet]
    std::vector<Bytes> in;              // slices of `heard`, of `told` for this rank: [source]
  };
  /// The last phase of messages: the payloads. The first of each message follows a header.
  struct Data {
    Tensor inlets;                    // payloads received from other ranks
    std::vector<Bytes> arrived;       // payloads without headers: [source][unit]
    std::vector<ConstBytes> out;      // `offered` with headers: [outlet][unit]
    std::vector<Bytes> in;            // `arrived` with headers: [source][unit]
    std::vector<std::byte*> fronts;   // headers that the stream writes or reads
    std::vector<ConstBytes> covered;  // payloads covered by each header's checksum: [front][unit]
    DeviceWords received;             // a ReceivedHeader of each rank that this one hears
  };

  void list_sources(const Message& message);
  void list_offered();
  void seal();
  void cover(const Bytes& payload, size_t i);
  PendingPtr next_phase();
  PendingPtr start_sizes();
  PendingPtr start_data();
  PendingPtr carry(std::span<const ConstBytes> out, std::span<const Bytes> in);
  int64_t arriving_bytes(size_t source, size_t i) const;
  size_t units() const { return open_.messages.size(); }
  bool is_own(size_t source) const { return open_.sources[source] == communicator_.rank(); }

  Communicator& communicator_;
  Context& context_;
  UnitMemory& memory_;
  const FlatParameters& parameters_;
  const int64_t piece_bytes_;
  const std::vector<int> neighbours_;
  OpenSlot open_;
  Sizes sizes_;
  Data data_;
  Pieces reduction_;  // all phases of a reduction
  Transfer transfer_;
  double wire_us_ = 0.0;
  int64_t encoded_bytes_ = 0;
  std::vector<Payload> payloads_;
  PendingPtr pending_;  // last: other ranks may use the memory above until it is gone
};

}  // namespace wisp
