// The exchange of a cut's units in a step: encoding, the wire slot by slot, decoding. An
// ExchangeScheduler decides what comes next, and this class does it. Belongs to the comm thread.
#pragma once

#include <functional>
#include <vector>

#include "distributed/exchange/courier.h"
#include "distributed/exchange/exchange_scheduler.h"
#include "distributed/exchange/slot_wire.h"
#include "distributed/exchange/step_plan.h"
#include "distributed/exchange/unit_memory.h"

namespace wisp {

class UnitExchange {
 public:
  /// `compressors` are indexed by method. With `guard`, a unit stays dense while it would send more
  /// than dense. `neighbours`, ascending, are the peers of Collective::neighbours. References and
  /// compressors outlive this object.
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

  /// Plans a step and fits the memory. No callback of the step before may be outstanding.
  void begin(const StepInfo& info, ExchangeScheduler::Items items);

  /// Encodes a unit's round into its outlets, in the order of the stream. A unit that is compressed
  /// for the first time, after updates without its compressor, first takes over the momentum.
  void encode(int unit, int round, Courier& courier);
  /// Marks that a unit travels dense. If it was compressed before, its compressor gives back the
  /// momentum and adds its residual to the gradient, in the order of the stream.
  void release(int unit);
  using Work = std::function<void(int item)>;
  /// Carries all slots of the step, and returns when all work is submitted. Items come from the
  /// courier's inbox. measure(item) has the effect that measured(item) is called, at once or when
  /// the stream has come so far. prepare(item) encodes the first round of a compressed unit.
  void run(const Work& measure, const Work& prepare, Courier& courier);
  void measured(int item) { scheduler_.measured(item); }

  /// Ends the step, after run(). check() is called when the stream has passed the last decode; with
  /// a device, the next step waits for that.
  void end(Courier& courier);
  /// Throws Error with step, unit and sender if a payload was malformed. Call it when the stream
  /// has passed end().
  void check() const;

 private:
  void start(const Slot& slot, Courier& courier);
  void advance(const Slot& slot, Courier& courier);
  void decode(const Slot& slot, Courier& courier);
  /// The unit's name in traces.
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
  StepInfo info_;  // the step under way
  ExchangeScheduler scheduler_;
};

}  // namespace wisp
