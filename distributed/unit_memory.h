// The memory of a plan's units: wire buffers, sizes, scratch and state. Belongs to the comm thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "distributed/communicator.h"
#include "distributed/schedule.h"

namespace wisp {

class UnitMemory {
 public:
  /// Makes the state that `compressors` (by method) declare for the units of `plan`: per-element
  /// state as arenas of `parameters`, the rest per unit, zeroed. The arguments outlive this object.
  UnitMemory(Context& context, FlatParameters& parameters, const Plan& plan,
             std::span<Compressor* const> compressors, int workers);

  /// Grows wire buffers and scratch to what these messages need; nothing happens if they did not
  /// change.
  void fit(std::span<const UnitRounds> rounds, std::span<Compressor* const> compressors,
           const StepInfo& info);

  Unit& unit(int index) { return units_[static_cast<size_t>(index)]; }
  /// Where a unit encodes to; for all_to_all, one per destination.
  std::span<const Outlet> outlets(int index, const Message& message);
  /// Where a rank's message for this unit is received.
  std::byte* inlet(int index, int from) const;
  /// Bytes that the unit's outlet `destination` holds after encode.
  int64_t used(int index, const Message& message, int destination = 0) const;

  /// Whole-unit state by name "SEGMENT/STATE", for checkpoints.
  const std::map<std::string, Tensor>& unit_state() const { return unit_state_; }

 private:
  struct Wire {
    Tensor out, in, used, scratch;
    int64_t out_stride = 0, in_stride = 0;
    std::vector<Outlet> outlets;
  };
  void grow(Tensor& tensor, int64_t bytes);

  Context& context_;
  const Plan& plan_;
  int workers_;
  std::vector<Unit> units_;
  std::vector<State> states_;
  std::vector<Wire> wires_;
  std::vector<UnitRounds> fitted_;
  std::map<std::string, Tensor> unit_state_;
};

}  // namespace wisp
