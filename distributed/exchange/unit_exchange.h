// The units of a cut on their way through a step: encoded, put on the wire slot by slot, decoded.
// Gradient averaging and gossip say when; what happens to a unit is here. Belongs to the comm
// thread.
#pragma once

#include <vector>

#include "distributed/exchange/courier.h"
#include "distributed/exchange/slot_wire.h"
#include "distributed/exchange/step_plan.h"
#include "distributed/exchange/unit_memory.h"

namespace wisp {

class UnitExchange {
 public:
  /// `compressors` are by method; with `guard`, a unit stays dense as long as it would send more
  /// than dense; `neighbours`, ascending, are the ranks that messages of that kind go to and come
  /// from. References and compressors outlive this object.
  UnitExchange(Communicator& communicator, Context& context, FlatParameters& parameters,
               std::vector<Compressor*> compressors, Cut cut, bool guard,
               std::vector<int> neighbours = {});

  const Cut& cut() const { return cut_; }
  Compressor& compressor_of(const CutUnit& unit) const {
    return *compressors_[static_cast<size_t>(unit.method)];
  }
  UnitMemory& memory() { return memory_; }
  const UnitMemory& memory() const { return memory_; }
  const StepPlan& step_plan() const { return step_plan_; }

  /// A step begins, of the one before nothing is to be looked after: plans it, and fits the memory
  /// to it.
  void begin(const StepInfo& info);

  /// Encodes a unit's round into its outlets, in the order of the stream. Before its first, its
  /// compressor takes over the momentum of updates that were made without it.
  void encode(int unit, int round, Courier& courier);
  /// A unit travels dense: if it was compressed before, its compressor gives back the momentum and
  /// adds to the gradient what it kept, in the order of the stream.
  void release(int unit);
  /// Whether the slot's units are encoded as far as start() needs it.
  bool encoded(const Slot& slot) const;
  /// Starts a slot whose units are encoded; one that has nothing to say is complete at once.
  void start(const Slot& slot, Courier& courier);
  /// Whether the slot that was started last is not complete yet.
  bool under_way() const { return slot_ != nullptr; }
  /// Whether it waits for pending(); if not, for the stream.
  bool on_wire() const { return wire_.active(); }
  Pending& pending() { return wire_.pending(); }
  /// SlotWire::advance(). When all is there, it is counted and checked; a slot is complete when its
  /// units are decoded and their next rounds encoded, in the order of the stream.
  void advance(Courier& courier);

  /// All slots of the step are complete: check() is called when the stream has come so far, which
  /// of a device's the next step waits for.
  void end(Courier& courier);
  /// When the stream has come to end(). Throws Error, naming step, unit and sender, if a payload
  /// was not well-formed.
  void check() const;

 private:
  void decode(Courier& courier);
  /// In traces.
  const std::string& name_of(int unit) const {
    return cut_.units[static_cast<size_t>(unit)].name(parameters_.segments());
  }

  Context& context_;
  const FlatParameters& parameters_;
  const std::vector<Compressor*> compressors_;
  const Cut cut_;
  UnitMemory memory_;
  SlotWire wire_;
  StepPlan step_plan_;
  StepInfo info_;                    // of the step under way
  std::vector<int> encoded_rounds_;  // by unit
  const Slot* slot_ = nullptr;       // under way
};

}  // namespace wisp
