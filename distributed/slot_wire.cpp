#include "distributed/slot_wire.h"

#include <algorithm>

#include "core/error.h"

namespace wisp {
namespace {

Bytes as_bytes(uint32_t* words, size_t count) {
  return {reinterpret_cast<std::byte*>(words), static_cast<int64_t>(count * sizeof(uint32_t))};
}

}  // namespace

SlotWire::SlotWire(Communicator& communicator, UnitMemory& memory, const FlatParameters& parameters)
    : communicator_(communicator),
      memory_(memory),
      parameters_(parameters),
      workers_(communicator.size()) {}

void SlotWire::start(const Slot& slot, std::span<const UnitRounds> rounds) {
  slot_ = &slot;
  transfer_ = {};
  encoded_bytes_ = 0;
  messages_.clear();
  for (const int unit : slot.units) {
    messages_.push_back(
        rounds[static_cast<size_t>(unit)].messages[static_cast<size_t>(slot.round)]);
  }
  sizes_phase_ = slot.message.variable;
  pending_ = sizes_phase_ ? start_sizes() : start_data();
}

bool SlotWire::advance() {
  const Transfer phase = pending_->wait();
  pending_.reset();
  transfer_.sent += phase.sent;
  transfer_.received += phase.received;
  if (transfer_.end_us == 0.0) transfer_.begin_us = phase.begin_us;
  transfer_.end_us = phase.end_us;
  if (!sizes_phase_) return true;
  sizes_phase_ = false;
  pending_ = start_data();
  return false;
}

PendingPtr SlotWire::start_sizes() {
  const size_t units = slot_->units.size();
  const bool spread = slot_->message.kind == Collective::all_to_all;
  const auto destinations = static_cast<size_t>(spread ? workers_ : 1);
  sizes_out_.resize(destinations * units);
  sizes_in_.assign(static_cast<size_t>(workers_) * units, 0);
  for (size_t destination = 0; destination < destinations; ++destination) {
    for (size_t i = 0; i < units; ++i) {
      const int64_t used =
          memory_.used(slot_->units[i], messages_[i], static_cast<int>(destination));
      WISP_CHECK(0 <= used && used <= messages_[i].bytes, "unit ", slot_->units[i], " encoded ",
                 used, " bytes into a message of at most ", messages_[i].bytes);
      sizes_out_[destination * units + i] = static_cast<uint32_t>(used);
    }
  }
  encoded_bytes_ += static_cast<int64_t>(sizes_out_.size() * sizeof(uint32_t));
  out_.clear();
  in_.clear();
  for (size_t destination = 0; destination < destinations; ++destination) {
    const Bytes words = as_bytes(&sizes_out_[destination * units], units);
    out_.push_back({words.data, words.bytes});
  }
  for (size_t from = 0; from < static_cast<size_t>(workers_); ++from) {
    in_.push_back(as_bytes(&sizes_in_[from * units], units));
  }
  switch (slot_->message.kind) {
    case Collective::all_gather:
      return communicator_.all_gather(out_, in_);
    case Collective::all_to_all:
      return communicator_.all_to_all(out_, in_);
    case Collective::broadcast: {
      const auto root = static_cast<size_t>(slot_->message.root);
      if (communicator_.rank() == slot_->message.root) {
        std::copy(sizes_out_.begin(), sizes_out_.end(),
                  sizes_in_.begin() + static_cast<std::ptrdiff_t>(root * units));
      }
      return communicator_.broadcast({&in_[root], 1}, slot_->message.root);
    }
    case Collective::pair: {
      std::vector<Exchange> messages;
      if (slot_->message.to >= 0) messages.push_back({slot_->message.to, out_[0], {}});
      if (slot_->message.from >= 0) {
        messages.push_back(
            {slot_->message.from, {}, in_[static_cast<size_t>(slot_->message.from)]});
      }
      return communicator_.exchange(messages);
    }
    default:
      throw Error("a variable message can be gathered, spread, broadcast or paired, not reduced");
  }
}

PendingPtr SlotWire::start_data() {
  switch (slot_->message.kind) {
    case Collective::all_reduce:
      return reduce();
    case Collective::all_gather:
      return gather();
    case Collective::all_to_all:
      return spread();
    case Collective::broadcast: {
      in_.clear();
      for (size_t i = 0; i < slot_->units.size(); ++i) {
        const int unit = slot_->units[i];
        const bool root = communicator_.rank() == slot_->message.root;
        std::byte* data = root ? memory_.outlets(unit, messages_[i])[0].data
                               : memory_.inlet(unit, slot_->message.root);
        in_.push_back({data, arrived_bytes(i, slot_->message.root)});
        if (root) encoded_bytes_ += in_.back().bytes;
      }
      return communicator_.broadcast(in_, slot_->message.root);
    }
    case Collective::pair:
      return pair();
    default:
      throw Error("gradient averaging cannot carry this kind of message");
  }
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
  return communicator_.all_reduce(in_, slot_->message.dtype, slot_->message.op);
}

PendingPtr SlotWire::gather() {
  out_.clear();
  in_.clear();
  for (size_t i = 0; i < slot_->units.size(); ++i) {
    const int unit = slot_->units[i];
    out_.push_back({memory_.outlets(unit, messages_[i])[0].data, memory_.used(unit, messages_[i])});
    encoded_bytes_ += out_.back().bytes;
  }
  for (int from = 0; from < workers_; ++from) {
    for (size_t i = 0; i < slot_->units.size(); ++i) {
      in_.push_back({memory_.inlet(slot_->units[i], from), arrived_bytes(i, from)});
    }
  }
  return communicator_.all_gather(out_, in_);
}

PendingPtr SlotWire::spread() {
  out_.clear();
  in_.clear();
  for (int to = 0; to < workers_; ++to) {
    for (size_t i = 0; i < slot_->units.size(); ++i) {
      const int unit = slot_->units[i];
      out_.push_back({memory_.outlets(unit, messages_[i])[static_cast<size_t>(to)].data,
                      memory_.used(unit, messages_[i], to)});
      encoded_bytes_ += out_.back().bytes;
    }
  }
  for (int from = 0; from < workers_; ++from) {
    for (size_t i = 0; i < slot_->units.size(); ++i) {
      in_.push_back({memory_.inlet(slot_->units[i], from), arrived_bytes(i, from)});
    }
  }
  return communicator_.all_to_all(out_, in_);
}

PendingPtr SlotWire::pair() {
  std::vector<Exchange> messages;
  for (size_t i = 0; i < slot_->units.size(); ++i) {
    const int unit = slot_->units[i];
    const Message& message = messages_[i];
    if (message.to >= 0) {
      const ConstBytes out{memory_.outlets(unit, message)[0].data, memory_.used(unit, message)};
      encoded_bytes_ += out.bytes;
      messages.push_back({message.to, out, {}});
    }
    if (message.from >= 0) {
      messages.push_back(
          {message.from, {}, {memory_.inlet(unit, message.from), arrived_bytes(i, message.from)}});
    }
  }
  return communicator_.exchange(messages);
}

int64_t SlotWire::arrived_bytes(size_t i, int from) const {
  if (!slot_->message.variable) return messages_[i].bytes;
  const int64_t bytes = sizes_in_[static_cast<size_t>(from) * slot_->units.size() + i];
  WISP_CHECK(bytes <= messages_[i].bytes, "rank ", from, " announced ", bytes, " bytes for unit ",
             slot_->units[i], ", at most ", messages_[i].bytes, " fit");
  return bytes;
}

std::span<const Payload> SlotWire::payloads(size_t i) {
  const int unit = slot_->units[i];
  const Message& message = messages_[i];
  payloads_.clear();
  switch (message.kind) {
    case Collective::all_reduce:
      payloads_.push_back({-1, memory_.outlets(unit, message)[0].data, message.bytes});
      break;
    case Collective::all_gather:
    case Collective::all_to_all:
      for (int from = 0; from < workers_; ++from) {
        payloads_.push_back({from, memory_.inlet(unit, from), arrived_bytes(i, from)});
      }
      break;
    case Collective::broadcast: {
      const bool root = communicator_.rank() == message.root;
      payloads_.push_back(
          {message.root,
           root ? memory_.outlets(unit, message)[0].data : memory_.inlet(unit, message.root),
           arrived_bytes(i, message.root)});
      break;
    }
    case Collective::pair:
      if (message.from >= 0) {
        payloads_.push_back(
            {message.from, memory_.inlet(unit, message.from), arrived_bytes(i, message.from)});
      }
      break;
    default:
      break;
  }
  return payloads_;
}

}  // namespace wisp
