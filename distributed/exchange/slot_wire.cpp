#include "distributed/exchange/slot_wire.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "core/base/narrow.h"
#include "distributed/communicator/collective.h"
#include "distributed/exchange/message_traffic.h"
#include "distributed/exchange/wire_header.h"

namespace wisp {
namespace {

Bytes as_bytes(uint32_t* words, size_t count) {
  return {reinterpret_cast<std::byte*>(words), static_cast<int64_t>(count * sizeof(uint32_t))};
}

/// The i-th payload of a message as it travels, the first one behind the header.
Bytes with_header(const Bytes& payload, size_t i) {
  const int64_t header = i == 0 ? kHeaderBytes : 0;
  return {payload.data - header, header + payload.bytes};
}

/// The hash of a slot in the header of rank `from`. It reveals a message for another slot.
uint32_t slot_word(const Slot& slot, int from) {
  uint64_t hash = hash_number(static_cast<uint64_t>(slot.bucket), hash_text("slot"));
  hash = hash_number(static_cast<uint64_t>(slot.round), hash);
  for (const int unit : slot.units) hash = hash_number(static_cast<uint64_t>(unit), hash);
  hash = hash_number(static_cast<uint64_t>(from), hash);
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

}  // namespace

SlotWire::SlotWire(Communicator& communicator, Context& context, UnitMemory& memory,
                   const FlatParameters& parameters, int64_t piece_bytes,
                   std::vector<int> neighbours)
    : communicator_(communicator),
      context_(context),
      memory_(memory),
      parameters_(parameters),
      piece_bytes_(piece_bytes),
      neighbours_(std::move(neighbours)) {
  const int64_t words = int64_t{sizeof(ReceivedHeader)} / size_of(DType::u32);
  data_.received = DeviceWords(context, {communicator.size(), words}, DType::u32);
}

void SlotWire::fit(std::span<const Slot> slots, std::span<const UnitRounds> rounds) {
  int64_t most = 0;
  for (const Slot& slot : slots) {
    int64_t bytes = kFront;
    for (const int unit : slot.units) {
      const UnitRounds& of_unit = rounds[static_cast<size_t>(unit)];
      bytes += whole_fronts(of_unit.messages[static_cast<size_t>(slot.round)].bytes);
    }
    list_sources(slot.message);
    const auto own = std::count(open_.sources.begin(), open_.sources.end(), communicator_.rank());
    most = std::max(most, bytes * (std::ssize(open_.sources) - own));
  }
  if (data_.inlets.defined() && data_.inlets.bytes() >= most) return;
  data_.inlets = {};  // free the old memory first
  data_.inlets = context_.empty({most}, DType::u8);
}

bool SlotWire::open(const Slot& slot, std::span<const UnitRounds> rounds, int64_t step) {
  open_.slot = &slot;
  open_.step = step;
  open_.phases = 0;
  data_.arrived.clear();
  transfer_ = {};
  wire_us_ = 0.0;
  encoded_bytes_ = 0;
  open_.messages.clear();
  for (const int unit : slot.units) {
    open_.messages.push_back(
        rounds[static_cast<size_t>(unit)].messages[static_cast<size_t>(slot.round)]);
  }
  list_sources(slot.message);
  list_offered();
  if (slot.message.kind == Collective::all_reduce) {
    // A piece begins at a multiple of `workers` elements: all together send as much as the whole.
    reduction_.cut(open_.offered, piece_bytes_, size_of(slot.message.dtype) * communicator_.size());
    encoded_bytes_ = reduction_.bytes();
  }
  const bool seals = has_header(slot.message.kind);
  if (seals) seal();
  return seals;
}

/// Lists the ranks whose message arrives here.
void SlotWire::list_sources(const Message& message) {
  const int rank = communicator_.rank();
  WISP_CHECK(message.kind != Collective::pair || (message.to != rank && message.from != rank),
             "a pair message joins rank ", rank, " with itself");
  open_.sources.clear();
  for (int from = 0; from < communicator_.size(); ++from) {
    if (hears(message, rank, from, neighbours_)) open_.sources.push_back(from);
  }
}

/// Lists what this rank offers to the slot.
void SlotWire::list_offered() {
  const Slot& slot = *open_.slot;
  open_.offered.clear();
  for (const int id : slot.dense) {
    const Tensor segment = FlatParameters::view(parameters_.grad(), parameters_.segment(id));
    open_.offered.push_back({segment.raw(), segment.bytes()});
  }
  const auto outlets = static_cast<size_t>(outlet_count(slot.message, communicator_.size()));
  for (size_t outlet = 0; outlet < outlets; ++outlet) {
    for (size_t i = 0; i < slot.units.size(); ++i) {
      const Message& message = open_.messages[i];
      open_.offered.push_back({memory_.outlets(slot.units[i], message)[outlet].data,
                               memory_.used(slot.units[i], message, outlet)});
    }
  }
  open_.own = outlet_for(slot.message, communicator_.rank()) * units();
}

bool SlotWire::advance() {
  const Transfer phase = pending_->wait();
  pending_.reset();
  transfer_.sent += phase.sent;
  transfer_.received += phase.received;
  if (transfer_.end_us == 0.0) transfer_.begin_us = phase.begin_us;
  transfer_.end_us = phase.end_us;
  wire_us_ += phase.end_us - phase.begin_us;
  pending_ = next_phase();
  return !pending_;
}

/// Starts the next phase of the slot. Returns null if there is none.
PendingPtr SlotWire::next_phase() {
  const Message& message = open_.slot->message;
  const int phase = open_.phases++;
  if (message.kind == Collective::none) return nullptr;
  if (message.variable && phase == 0) return start_sizes();
  if (message.kind != Collective::all_reduce)
    return phase == (message.variable ? 1 : 0) ? start_data() : nullptr;
  if (!reduction_.more()) return nullptr;
  return communicator_.all_reduce(reduction_.next(), message.dtype, message.op);
}

PendingPtr SlotWire::start_sizes() {
  auto& [told, heard, out, in] = sizes_;
  told.clear();
  for (const Bytes& payload : open_.offered)
    told.push_back(narrow<uint32_t>(payload.bytes, "bytes of a variable message"));
  heard.assign(open_.sources.size() * units(), 0);
  out.clear();
  for (size_t at = 0; at < told.size(); at += units()) out.push_back(as_bytes(&told[at], units()));
  in.clear();
  for (size_t source = 0; source < open_.sources.size(); ++source)
    in.push_back(as_bytes(is_own(source) ? &told[open_.own] : &heard[source * units()], units()));
  return carry(out, in);
}

PendingPtr SlotWire::start_data() {
  data_.out.clear();
  for (size_t at = 0; at < open_.offered.size(); ++at)
    data_.out.push_back(with_header(open_.offered[at], at % units()));
  data_.in.clear();
  std::byte* inlet = data_.inlets.raw();
  for (size_t source = 0; source < open_.sources.size(); ++source) {
    const bool own = is_own(source);
    if (!own) inlet += kFront;
    for (size_t i = 0; i < units(); ++i) {
      const Bytes payload =
          own ? open_.offered[open_.own + i] : Bytes{inlet, arriving_bytes(source, i)};
      data_.arrived.push_back(payload);
      data_.in.push_back(with_header(payload, i));
      if (!own) inlet += whole_fronts(payload.bytes);
    }
  }
  return carry(data_.out, data_.in);
}

/// Bytes of the i-th unit's payload from another rank. Throws Error if it announced too many.
int64_t SlotWire::arriving_bytes(size_t source, size_t i) const {
  const Message& message = open_.messages[i];
  if (!message.variable) return message.bytes;
  const int64_t bytes = sizes_.heard[source * units() + i];
  WISP_CHECK(bytes <= message.bytes, "step ", open_.step, ", bucket ", open_.slot->bucket,
             ": rank ", open_.sources[source], " announced ", bytes, " bytes for unit ",
             open_.slot->units[i], ", at most ", message.bytes, " fit");
  return bytes;
}

/// Starts the collective that moves a phase's slices.
PendingPtr SlotWire::carry(std::span<const ConstBytes> out, std::span<const Bytes> in) {
  encoded_bytes_ += total_bytes(out);
  const Message& message = open_.slot->message;
  switch (message.kind) {
    case Collective::all_gather:
      return communicator_.all_gather(out, in);
    case Collective::all_to_all:
      return communicator_.all_to_all(out, in);
    case Collective::pair: {
      std::vector<Exchange> peers;
      if (message.to >= 0) peers.push_back({message.to, out.front(), {}});
      if (message.from >= 0 && message.from == message.to) {
        peers.front().in = in.front();
      } else if (message.from >= 0) {
        peers.push_back({message.from, {}, in.front()});
      }
      return communicator_.exchange(peers);
    }
    case Collective::neighbours: {  // every neighbour gets all of `out`
      std::vector<Exchange> peers;
      for (size_t at = 0; at < in.size(); ++at) {
        const size_t source = at / out.size();
        if (!is_own(source)) peers.push_back({open_.sources[source], out[at % out.size()], in[at]});
      }
      return communicator_.exchange(peers);
    }
    default:
      throw Error("a variable message cannot be reduced");
  }
}

/// Writes the header of each destination in front of its first payload.
void SlotWire::seal() {
  data_.fronts.clear();
  data_.covered.clear();
  for (size_t at = 0; at < open_.offered.size(); ++at) cover(open_.offered[at], at % units());
  const WireHeader header{.step = static_cast<uint32_t>(open_.step),
                          .slot = slot_word(*open_.slot, communicator_.rank())};
  if (!data_.fronts.empty()) wisp::seal(context_.stream, header, data_.fronts, data_.covered);
}

bool SlotWire::inspect() {
  data_.fronts.clear();
  data_.covered.clear();
  for (size_t at = 0; at < data_.arrived.size(); ++at) {
    if (!is_own(at / units())) cover(data_.arrived[at], at % units());
  }
  if (data_.fronts.empty()) return false;
  read_headers(context_.stream, data_.fronts, data_.covered,
               reinterpret_cast<ReceivedHeader*>(data_.received.device().raw()));
  data_.received.fetch(context_.stream);
  return true;
}

/// Lists the i-th payload of a message for its header.
void SlotWire::cover(const Bytes& payload, size_t i) {
  if (i == 0) data_.fronts.push_back(payload.data - kHeaderBytes);
  data_.covered.push_back(payload);
}

void SlotWire::check() {
  const auto* received = reinterpret_cast<const ReceivedHeader*>(data_.received.host().raw());
  for (const int from : open_.sources) {
    if (from == communicator_.rank()) continue;
    const WireHeader expected{.step = static_cast<uint32_t>(open_.step),
                              .slot = slot_word(*open_.slot, from),
                              .checksum = received->checksum};
    const std::string wrong = complaint(received->header, expected);
    WISP_CHECK(wrong.empty(), "step ", open_.step, ", bucket ", open_.slot->bucket,
               ": the message of rank ", from, " ", wrong);
    ++received;
  }
}

std::span<const Payload> SlotWire::payloads(size_t i) {
  const Slot& slot = *open_.slot;
  const auto add = [&](int from, const Bytes& payload) {
    payloads_.push_back({from, payload.data, payload.bytes, memory_.complaint(slot.units[i])});
  };
  payloads_.clear();
  if (slot.message.kind == Collective::all_reduce) add(-1, open_.offered[slot.dense.size() + i]);
  for (size_t source = 0; source < open_.sources.size(); ++source)
    add(open_.sources[source], data_.arrived[source * units() + i]);
  return payloads_;
}

}  // namespace wisp
