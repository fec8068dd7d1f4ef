// The plan of a step: the path of every unit, and the order of its collectives. It is the same on
// all ranks. Belongs to the comm thread.
#pragma once

#include <span>
#include <vector>

#include "core/context.h"
#include "core/parameter.h"
#include "distributed/exchange/slot.h"

namespace wisp {

/// The path of a unit in a step: compressed, or the reason why it is dense.
enum class UnitPath { compressed, warm_up, more_than_dense };

/// Bytes that rank 0, which sends most, sends for a unit at the ratio of `info`: the mean over the
/// period of its method that begins with the step of `info`. All ranks get the same number.
double mean_bytes(const Compressor& compressor, const UnitSpec& spec, StepInfo info);

/// Plans a unit of `raw_bytes` for the step of `info`. The unit is dense until its method starts,
/// while a sparse method's ratio is 1 or, with `guard`, while its mean_bytes() would be more than a
/// dense all-reduce sends. Single steps of a period may send more. A unit
/// that is `engaged` by this number of workers stays compressed, because its compressor owns the
/// momentum, which differs by rank. Fills `messages` with the messages that the compressed unit
/// sends or would send; empty during warm-up.
UnitPath plan_unit(const Compressor& compressor, const Traits& traits, const UnitSpec& spec,
                   int64_t raw_bytes, const StepInfo& info, bool engaged, bool guard,
                   std::vector<Message>& messages);

class StepPlan {
 public:
  /// `compressors` are indexed by method. With `guard`, a unit stays dense while it would send more
  /// than dense. The arguments outlive this object.
  StepPlan(const FlatParameters& parameters, const Cut& cut,
           std::span<Compressor* const> compressors, bool guard);

  /// Plans the step of `info`. Returns whether the plan differs from the one before.
  bool make(const StepInfo& info);

  std::span<const UnitRounds> rounds() const { return rounds_; }
  std::span<const Slot> slots() const { return slots_; }
  uint64_t hash() const { return hash_; }
  /// The kind of each segment's gradient after the step.
  std::span<const UpdateRule> rules() const { return rules_; }
  int compressed_units() const;

  /// Traits of the unit's compressor.
  const Traits& traits(size_t unit) const { return traits_[unit]; }
  /// Whether the unit was compressed in an earlier step, so that its compressor owns the state that
  /// traits() names. Throws Error if only some of its segments were.
  bool engaged(const CutUnit& unit) const { return engaged_workers(unit) != 0; }
  /// Marks the unit as compressed from now on, with the step's `workers`, or as dense again.
  void engage(const CutUnit& unit, int workers);
  void release(const CutUnit& unit) { engage(unit, 0); }
  /// (segments) i64: number of workers that engaged the segment, or 0. Belongs in checkpoints: with
  /// another number of workers, the next step decides anew.
  const Tensor& engaged_segments() const { return engaged_; }

 private:
  int64_t engaged_workers(const CutUnit& unit) const;

  const FlatParameters& parameters_;
  const Cut& cut_;
  const std::span<Compressor* const> compressors_;
  const bool guard_;
  std::vector<Traits> traits_;
  std::vector<UnitRounds> rounds_;  // the source of slots_
  std::vector<UnitRounds> next_rounds_;
  std::vector<Slot> slots_;
  uint64_t hash_ = 0;
  std::vector<UpdateRule> rules_;
  Tensor engaged_;
};

}  // namespace wisp
