// The memory of a cut's units: outlets (the buffers that they encode into), scratch and state.
// Belongs to the comm thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/device_words.h"
#include "core/parameter.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/slot.h"

namespace wisp {

class UnitMemory {
 public:
  /// Makes the state that `compressors` (by method) declare for the units of `cut`, zeroed: arenas
  /// of `parameters` if per element, else state per unit. The arguments outlive this object.
  UnitMemory(Context& context, FlatParameters& parameters, const Cut& cut,
             std::span<Compressor* const> compressors, int rank, int workers);

  /// Grows outlets and scratch to the sizes that the units need in this step.
  void fit(std::span<const UnitRounds> rounds, const StepInfo& info);

  Unit& unit(int index) { return units_[static_cast<size_t>(index)]; }
  /// The outlets of a unit, outlet_count() of them. kHeaderBytes before each are free for a header.
  std::span<const Outlet> outlets(int index, const Message& message);
  /// Fetches the number of used bytes after encode, in the order of the stream, for used().
  void fetch_used(int index) const {
    wires_[static_cast<size_t>(index)].used.fetch(context_.stream);
  }
  /// Bytes in use of an outlet. Throws Error if they exceed its capacity.
  int64_t used(int index, const Message& message, size_t outlet) const;
  /// Device word for complaints about a unit's payloads.
  int64_t* complaint(int index) const { return complaints_.device().data<int64_t>() + index; }
  /// Fetches the complaints after decode, in the order of the stream, for complaint_of().
  void fetch_complaints() const { complaints_.fetch(context_.stream); }
  /// The text of complaint_in() about a unit's payloads.
  std::string complaint_of(int index) const {
    return complaint_in(complaints_.host().data<int64_t>()[index]);
  }

  /// All state that the units' compressors declared. State per element, and state of a field with
  /// one segment, is named "STATE/SEGMENT". The elements of a segment that this rank owns, perhaps
  /// none, are named "STATE/SEGMENT[BEGIN:END]". State of a unit is named "unit/SEGMENT/STATE" by
  /// its first segment.
  const std::vector<SavedState>& state() const { return saved_; }
  /// Whether some state belongs to whole units, and so is invalid in another cut of the model.
  bool has_unit_state() const { return has_unit_state_; }

 private:
  struct Wire {
    Tensor out, scratch;
    DeviceWords used;  // i64, by outlet
    std::vector<Outlet> outlets;
  };
  void grow(Tensor& tensor, int64_t bytes);
  void save(const StateSpec& spec, const Tensor& arena, const Segment& segment,
            std::span<const Slice> owned);

  Context& context_;
  const Cut& cut_;
  const std::span<Compressor* const> compressors_;
  int workers_;
  std::vector<Unit> units_;
  std::vector<State> states_;
  std::vector<Wire> wires_;
  DeviceWords complaints_;  // i64, by unit
  std::vector<SavedState> saved_;
  bool has_unit_state_ = false;
};

}  // namespace wisp
