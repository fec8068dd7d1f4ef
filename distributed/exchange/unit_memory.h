// The memory of a cut's units: the buffers they encode into, scratch and state. Belongs to the comm
// thread.
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
  /// Makes the state that `compressors` (by method) declare for the units of `cut`: per-element
  /// state as arenas of `parameters`, the rest per unit, zeroed. The arguments outlive this object.
  UnitMemory(Context& context, FlatParameters& parameters, const Cut& cut,
             std::span<Compressor* const> compressors, int rank, int workers);

  /// Grows outlets and scratch to what the units need in this step.
  void fit(std::span<const UnitRounds> rounds, const StepInfo& info);

  Unit& unit(int index) { return units_[static_cast<size_t>(index)]; }
  /// Where a unit encodes to: as many as outlet_count() says. The kHeaderBytes before each are free
  /// for a header.
  std::span<const Outlet> outlets(int index, const Message& message);
  /// After encode: what used() says when the stream has come so far.
  void fetch_used(int index) const {
    wires_[static_cast<size_t>(index)].used.fetch(context_.stream);
  }
  /// Bytes in use of an outlet. Throws Error if they are more than it holds.
  int64_t used(int index, const Message& message, size_t outlet) const;
  /// For a unit's payloads.
  int64_t* complaint(int index) const { return complaints_.device().data<int64_t>() + index; }
  /// After decode: what complaint_of() says when the stream has come so far.
  void fetch_complaints() const { complaints_.fetch(context_.stream); }
  /// What is wrong with a unit's payloads, as complaint_in() has it.
  std::string complaint_of(int index) const {
    return complaint_in(complaints_.host().data<int64_t>()[index]);
  }

  /// All state that the units' compressors declared: "STATE/SEGMENT" if it is per element,
  /// or a field's that is one segment; "STATE/SEGMENT[BEGIN:END]" for the elements of a segment
  /// that this rank owns, perhaps none; "unit/SEGMENT/STATE" with the unit's first segment if it is
  /// the unit's.
  const std::vector<SavedState>& state() const { return saved_; }
  /// Whether some state belongs to whole units: it has no meaning in another cut of the model.
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
  int rank_, workers_;
  std::vector<Unit> units_;
  std::vector<State> states_;
  std::vector<Wire> wires_;
  DeviceWords complaints_;  // i64, by unit
  std::vector<SavedState> saved_;
  bool has_unit_state_ = false;
};

}  // namespace wisp
