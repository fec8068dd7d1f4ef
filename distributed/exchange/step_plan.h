// The plan of a step: what every unit does, and the order in which all of it travels. It is the
// same on all ranks. Belongs to the comm thread.
#pragma once

#include <span>
#include <vector>

#include "core/context.h"
#include "core/parameter.h"
#include "distributed/exchange/slot.h"

namespace wisp {

/// Why a unit is dense in a step, or that it is not.
enum class UnitPath { compressed, warm_up, more_than_dense };

/// A unit of `raw_bytes` in the step of `info`: dense until its method starts, while its ratio is 1
/// or, with `guard`, while it would send more than dense; once `engaged` by this number of workers
/// it stays compressed, for its compressor owns the momentum, which differs by rank. Fills
/// `messages` with what it sends, or would send.
UnitPath plan_unit(const Compressor& compressor, const Traits& traits, const UnitSpec& spec,
                   int64_t raw_bytes, const StepInfo& info, bool engaged, bool guard,
                   std::vector<Message>& messages);

class StepPlan {
 public:
  /// `compressors` are by method. With `guard`, a unit stays dense as long as it would send more
  /// than dense. The arguments outlive this object.
  StepPlan(const FlatParameters& parameters, const Cut& cut,
           std::span<Compressor* const> compressors, bool guard);

  /// Plans the step of `info`. True if it differs from the one before.
  bool make(const StepInfo& info);

  std::span<const UnitRounds> rounds() const { return rounds_; }
  std::span<const Slot> slots() const { return slots_; }
  uint64_t hash() const { return hash_; }
  /// What a segment's gradient is after the step.
  std::span<const UpdateRule> rules() const { return rules_; }
  int compressed_units() const;

  /// By unit: its compressor's.
  const Traits& traits(size_t unit) const { return traits_[unit]; }
  /// Whether the unit was compressed in an earlier step, so that its compressor owns what traits()
  /// says. Throws Error if that is true of some of its segments only.
  bool engaged(const CutUnit& unit) const { return engaged_workers(unit) != 0; }
  /// The unit is compressed from now on, or dense again. `workers` of the step in which it is.
  void engage(const CutUnit& unit, int workers);
  void release(const CutUnit& unit);
  /// (segments) i64: how many workers engaged it, 0 where it is not. Belongs into checkpoints: with
  /// another number the next step decides anew.
  const Tensor& engaged_segments() const { return engaged_; }

 private:
  int64_t engaged_workers(const CutUnit& unit) const;

  const FlatParameters& parameters_;
  const Cut& cut_;
  const std::span<Compressor* const> compressors_;
  const bool guard_;
  std::vector<Traits> traits_;
  std::vector<UnitRounds> rounds_;  // what slots_ was made from
  std::vector<UnitRounds> next_rounds_;
  std::vector<Slot> slots_;
  uint64_t hash_ = 0;
  std::vector<UpdateRule> rules_;
  Tensor engaged_;
};

}  // namespace wisp
