#include "distributed/exchange/slot_wire.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "distributed/exchange/message_traffic.h"
#include "distributed/exchange/wire_header.h"

namespace wisp {
namespace {

Bytes as_bytes(uint32_t* words, size_t count) {
  return {reinterpret_cast<std::byte*>(words), static_cast<int64_t>(count * sizeof(uint32_t))};
}

}  // namespace

SlotWire::SlotWire(Communicator& communicator, Context& context, UnitMemory& memory,
                   const FlatParameters& parameters, int64_t piece_bytes,
                   std::vector<int> neighbours)
    : communicator_(communicator),
      context_(context),
      memory_(memory),
      parameters_(parameters),
      workers_(communicator.size()),
      piece_bytes_(piece_bytes),
      neighbours_(std::move(neighbours)),
      received_(context,
                {communicator.size(), int64_t{sizeof(ReceivedHeader)} / size_of(DType::u32)},
                DType::u32) {}

void SlotWire::fit(std::span<const Slot> slots, std::span<const UnitRounds> rounds) {
  int64_t most = 0;
  for (const Slot& slot : slots) {
    int64_t bytes = kFront;
    for (const int unit : slot.units) {
      const UnitRounds& of_unit = rounds[static_cast<size_t>(unit)];
      bytes += whole_fronts(of_unit.messages[static_cast<size_t>(slot.round)].bytes);
    }
    list_sources(slot.message);
    const auto others = std::count_if(sources_.begin(), sources_.end(),
                                      [&](int from) { return from != communicator_.rank(); });
    most = std::max(most, bytes * others);
  }
  if (inlets_.defined() && inlets_.bytes() >= most) return;
  inlets_ = {};  // free the old memory first
  inlets_ = context_.empty({most}, DType::u8);
}

bool SlotWire::open(const Slot& slot, std::span<const UnitRounds> rounds, int64_t step) {
  slot_ = &slot;
  step_ = step;
  transfer_ = {};
  wire_us_ = 0.0;
  encoded_bytes_ = 0;
  pieces_ = 1;
  piece_ = 0;
  messages_.clear();
  for (const int unit : slot.units) {
    messages_.push_back(
        rounds[static_cast<size_t>(unit)].messages[static_cast<size_t>(slot.round)]);
  }
  list_sources(slot.message);
  const bool seals = has_header(slot.message.kind);
  if (seals) seal();
  return seals;
}

void SlotWire::start() {
  if (slot_->message.kind == Collective::none) return;
  sizes_phase_ = slot_->message.variable;
  pending_ = sizes_phase_ ? start_sizes() : start_data();
}

/// Lists the ranks whose message arrives here.
void SlotWire::list_sources(const Message& message) {
  const int rank = communicator_.rank();
  WISP_CHECK(message.kind != Collective::pair || (message.to != rank && message.from != rank),
             "a pair message joins rank ", rank, " with itself");
  sources_.clear();
  for (int from = 0; from < workers_; ++from) {
    if (hears(message, rank, from, neighbours_)) sources_.push_back(from);
  }
}

bool SlotWire::advance() {
  const Transfer phase = pending_->wait();
  pending_.reset();
  transfer_.sent += phase.sent;
  transfer_.received += phase.received;
  if (transfer_.end_us == 0.0) transfer_.begin_us = phase.begin_us;
  transfer_.end_us = phase.end_us;
  wire_us_ += phase.end_us - phase.begin_us;
  if (sizes_phase_) {
    sizes_phase_ = false;
    pending_ = start_data();
    return false;
  }
  if (++piece_ < pieces_) {
    pending_ = reduce_piece();
    return false;
  }
  return true;
}

int SlotWire::outlets_per_unit() const {
  return outlet_count(slot_->message, communicator_.rank(), workers_);
}

/// The outlet that this rank sends to itself; its bytes stay in place.
size_t SlotWire::own_outlet() const { return outlet_for(slot_->message, communicator_.rank()); }

/// The header's hash of the slot, which reveals a message for another slot.
uint32_t SlotWire::slot_word(int from) const {
  uint64_t hash = hash_number(static_cast<uint64_t>(slot_->bucket), hash_text("slot"));
  hash = hash_number(static_cast<uint64_t>(slot_->round), hash);
  for (const int unit : slot_->units) hash = hash_number(static_cast<uint64_t>(unit), hash);
  hash = hash_number(static_cast<uint64_t>(from), hash);
  return static_cast<uint32_t>(hash ^ hash >> 32);
}

/// Writes the header of each destination in front of its first payload.
void SlotWire::seal() {
  const WireHeader header{.step = static_cast<uint32_t>(step_),
                          .slot = slot_word(communicator_.rank())};
  fronts_.clear();
  covered_.clear();
  for (size_t outlet = 0; outlet < static_cast<size_t>(outlets_per_unit()); ++outlet) {
    fronts_.push_back(memory_.outlets(slot_->units[0], messages_[0])[outlet].data - kHeaderBytes);
    for (size_t i = 0; i < slot_->units.size(); ++i) {
      covered_.push_back({memory_.outlets(slot_->units[i], messages_[i])[outlet].data,
                          memory_.used(slot_->units[i], messages_[i], outlet)});
    }
  }
  if (!fronts_.empty()) wisp::seal(context_.stream, header, fronts_, covered_);
}

bool SlotWire::inspect() {
  fronts_.clear();
  covered_.clear();
  const size_t units = slot_->units.size();
  for (size_t source = 0; source < sources_.size(); ++source) {
    if (sources_[source] == communicator_.rank()) continue;
    fronts_.push_back(in_[source * units].data);
    for (size_t i = 0; i < units; ++i) {
      const Payload payload = arrived(source, i);
      covered_.push_back({payload.data, payload.bytes});
    }
  }
  if (fronts_.empty()) return false;
  read_headers(context_.stream, fronts_, covered_,
               reinterpret_cast<ReceivedHeader*>(received_.device().raw()));
  received_.fetch(context_.stream);
  return true;
}

void SlotWire::check() {
  const auto* received = reinterpret_cast<const ReceivedHeader*>(received_.host().raw());
  for (const int from : sources_) {
    if (from == communicator_.rank()) continue;
    const WireHeader expected{.step = static_cast<uint32_t>(step_),
                              .slot = slot_word(from),
                              .checksum = received->checksum};
    const std::string wrong = complaint(received->header, expected);
    WISP_CHECK(wrong.empty(), "step ", step_, ", bucket ", slot_->bucket, ": the message of rank ",
               from, " ", wrong);
    ++received;
  }
}

PendingPtr SlotWire::start_sizes() {
  const size_t units = slot_->units.size();
  const auto outlets = static_cast<size_t>(outlets_per_unit());
  sizes_out_.resize(outlets * units);
  sizes_in_.assign(static_cast<size_t>(workers_) * units, 0);
  out_.clear();
  in_.clear();
  for (size_t outlet = 0; outlet < outlets; ++outlet) {
    for (size_t i = 0; i < units; ++i) {
      sizes_out_[outlet * units + i] =
          static_cast<uint32_t>(memory_.used(slot_->units[i], messages_[i], outlet));
    }
    const Bytes words = as_bytes(&sizes_out_[outlet * units], units);
    out_.push_back({words.data, words.bytes});
    encoded_bytes_ += words.bytes;
  }
  for (const int from : sources_) {
    const bool own = from == communicator_.rank();
    in_.push_back(as_bytes(
        own ? &sizes_out_[own_outlet() * units] : &sizes_in_[static_cast<size_t>(from) * units],
        units));
  }
  return carry();
}

PendingPtr SlotWire::start_data() {
  if (slot_->message.kind == Collective::all_reduce) return reduce();
  const size_t units = slot_->units.size();
  out_.clear();
  in_.clear();
  for (size_t outlet = 0; outlet < static_cast<size_t>(outlets_per_unit()); ++outlet) {
    for (size_t i = 0; i < units; ++i) {
      const int unit = slot_->units[i];
      const int64_t header = i == 0 ? kHeaderBytes : 0;
      out_.push_back({memory_.outlets(unit, messages_[i])[outlet].data - header,
                      header + memory_.used(unit, messages_[i], outlet)});
      encoded_bytes_ += out_.back().bytes;
    }
  }
  std::byte* inlet = inlets_.raw();
  for (const int from : sources_) {
    if (from != communicator_.rank()) inlet += kFront;
    for (size_t i = 0; i < units; ++i) {
      const int64_t header = i == 0 ? kHeaderBytes : 0;
      if (from == communicator_.rank()) {
        in_.push_back({memory_.outlets(slot_->units[i], messages_[i])[own_outlet()].data - header,
                       out_[own_outlet() * units + i].bytes});
      } else {
        const int64_t bytes = arrived_bytes(i, from);
        in_.push_back({inlet - header, header + bytes});
        inlet += whole_fronts(bytes);
      }
    }
  }
  return carry();
}

/// Starts the collective that moves out_ to in_.
PendingPtr SlotWire::carry() {
  const Message& message = messages_.front();
  switch (message.kind) {
    case Collective::all_gather:
      return communicator_.all_gather(out_, in_);
    case Collective::all_to_all:
      return communicator_.all_to_all(out_, in_);
    case Collective::broadcast:
      return communicator_.broadcast(in_, message.root);
    case Collective::pair: {
      std::vector<Exchange> peers;
      if (message.to >= 0) peers.push_back({message.to, out_.front(), {}});
      if (message.from >= 0 && message.from == message.to) {
        peers.front().in = in_.front();
      } else if (message.from >= 0) {
        peers.push_back({message.from, {}, in_.front()});
      }
      return communicator_.exchange(peers);
    }
    case Collective::neighbours:
      return communicator_.exchange(with_neighbours());
    default:
      throw Error("a variable message cannot be reduced");
  }
}

/// Messages in which every neighbour gets all of out_ and fills its part of in_.
std::vector<Exchange> SlotWire::with_neighbours() const {
  std::vector<Exchange> messages;
  for (size_t source = 0; source < sources_.size(); ++source) {
    if (sources_[source] == communicator_.rank()) continue;
    for (size_t i = 0; i < out_.size(); ++i)
      messages.push_back({sources_[source], out_[i], in_[source * out_.size() + i]});
  }
  return messages;
}

PendingPtr SlotWire::reduce() {
  in_.clear();
  for (const int id : slot_->dense) {
    const Tensor segment =
        FlatParameters::view(parameters_.grad(), parameters_.segments()[static_cast<size_t>(id)]);
    in_.push_back({segment.raw(), segment.bytes()});
  }
  for (size_t i = 0; i < slot_->units.size(); ++i) {
    in_.push_back({memory_.outlets(slot_->units[i], messages_[i])[0].data, messages_[i].bytes});
  }
  for (const Bytes& bytes : in_) encoded_bytes_ += bytes.bytes;
  const int64_t shares = encoded_bytes_ / size_of(slot_->message.dtype) / workers_;
  if (piece_bytes_ > 0) pieces_ = std::min(encoded_bytes_ / piece_bytes_, shares);
  pieces_ = std::max(pieces_, int64_t{1});
  return reduce_piece();
}

/// Reduces the next piece of in_. It begins at a multiple of `workers` elements, so that all pieces
/// together send as much as the whole would.
PendingPtr SlotWire::reduce_piece() {
  const int64_t whole = size_of(slot_->message.dtype) * workers_;
  const auto border = [&](int64_t piece) {
    return piece == pieces_ ? encoded_bytes_ : encoded_bytes_ / whole * piece / pieces_ * whole;
  };
  const int64_t from = border(piece_), to = border(piece_ + 1);
  part_.clear();
  int64_t begin = 0;  // begin of the slice
  for (const Bytes& slice : in_) {
    const int64_t first = std::max(from, begin), last = std::min(to, begin + slice.bytes);
    if (first < last) part_.push_back({slice.data + (first - begin), last - first});
    begin += slice.bytes;
  }
  return communicator_.all_reduce(part_, slot_->message.dtype, slot_->message.op);
}

int64_t SlotWire::arrived_bytes(size_t i, int from) const {
  if (!slot_->message.variable) return messages_[i].bytes;
  const int64_t bytes = sizes_in_[static_cast<size_t>(from) * slot_->units.size() + i];
  WISP_CHECK(bytes <= messages_[i].bytes, "step ", step_, ", bucket ", slot_->bucket, ": rank ",
             from, " announced ", bytes, " bytes for unit ", slot_->units[i], ", at most ",
             messages_[i].bytes, " fit");
  return bytes;
}

std::span<const Payload> SlotWire::payloads(size_t i) {
  payloads_.clear();
  if (slot_->message.kind == Collective::all_reduce) {
    const int64_t bytes = messages_[i].bytes;
    payloads_.push_back({-1, memory_.outlets(slot_->units[i], messages_[i])[0].data, bytes,
                         memory_.complaint(slot_->units[i])});
  }
  for (size_t source = 0; source < sources_.size(); ++source)
    payloads_.push_back(arrived(source, i));
  return payloads_;
}

/// The i-th unit's payload from a source, without the header.
Payload SlotWire::arrived(size_t source, size_t i) const {
  const Bytes& bytes = in_[source * slot_->units.size() + i];
  const int64_t header = i == 0 ? kHeaderBytes : 0;
  return {sources_[source], bytes.data + header, bytes.bytes - header,
          memory_.complaint(slot_->units[i])};
}

}  // namespace wisp
