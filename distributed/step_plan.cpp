#include "distributed/step_plan.h"

#include <algorithm>

#include "core/error.h"

namespace wisp {
namespace {

/// Reduced messages carry no header: ranks that disagree about their sizes find out here.
uint64_t hash_sizes(std::span<const UnitRounds> units, uint64_t seed) {
  for (const UnitRounds& unit : units) {
    for (const Message& message : unit.messages)
      seed = hash_number(static_cast<uint64_t>(message.bytes), seed);
  }
  return seed;
}

}  // namespace

StepPlan::StepPlan(Context& context, const FlatParameters& parameters, const Plan& plan,
                   std::span<Compressor* const> compressors, bool guard)
    : parameters_(parameters),
      plan_(plan),
      compressors_(compressors),
      guard_(guard),
      rounds_(plan.units.size()),
      next_rounds_(plan.units.size()),
      rules_(parameters.segments().size(), UpdateRule::gradient),
      engaged_(context.zeros({static_cast<int64_t>(parameters.segments().size())}, DType::i64)) {
  for (const PlannedUnit& unit : plan.units)
    traits_.push_back(compressors[static_cast<size_t>(unit.method)]->traits());
}

bool StepPlan::make(const StepInfo& info) {
  for (size_t i = 0; i < next_rounds_.size(); ++i) plan_unit(i, info, next_rounds_[i]);
  if (!slots_.empty() && next_rounds_ == rounds_) return false;
  std::swap(rounds_, next_rounds_);
  slots_ = make_schedule(plan_, rounds_, parameters_.dtype());
  hash_ = hash_schedule(slots_, hash_sizes(rounds_, plan_.hash));
  for (size_t i = 0; i < rounds_.size(); ++i) {
    for (const int id : plan_.units[i].segments) {
      rules_[static_cast<size_t>(id)] =
          rounds_[i].compressed ? traits_[i].result : UpdateRule::gradient;
    }
  }
  return true;
}

/// A unit stays dense until its method starts, while its ratio is 1 or, with the guard, while it
/// would send more than dense. Once it is compressed it stays so: its compressor owns the momentum,
/// which differs by rank.
void StepPlan::plan_unit(size_t index, const StepInfo& info, UnitRounds& rounds) const {
  const PlannedUnit& unit = plan_.units[index];
  const Compressor& compressor = *compressors_[static_cast<size_t>(unit.method)];
  const bool engaged = this->engaged(unit);
  rounds.messages.clear();
  rounds.compressed =
      engaged || (compressor.started(info) && (!traits_[index].sparse || info.ratio < 1.0));
  if (!rounds.compressed) return;
  for (int round = 0; round < compressor.rounds(unit.spec(), info); ++round)
    rounds.messages.push_back(compressor.message(unit.spec(), info, round));
  const int64_t raw = unit.numel * size_of(parameters_.dtype());
  if (engaged || !guard_ || !sends_more_than_dense(rounds.messages, raw, info.workers)) return;
  rounds.compressed = false;
  rounds.messages.clear();
}

int StepPlan::compressed_units() const {
  return static_cast<int>(std::count_if(
      rounds_.begin(), rounds_.end(), [](const UnitRounds& rounds) { return rounds.compressed; }));
}

/// Segments are engaged unit by unit; only a checkpoint of another cut can part them.
bool StepPlan::engaged(const PlannedUnit& unit) const {
  const int64_t* engaged = engaged_.data<int64_t>();
  const int first = unit.segments.front();
  for (const int id : unit.segments) {
    WISP_CHECK(
        engaged[id] == engaged[first], "the checkpoint has compressed ",
        parameters_.segments()[static_cast<size_t>(engaged[id] ? id : first)].name, " but not ",
        parameters_.segments()[static_cast<size_t>(engaged[id] ? first : id)].name,
        ", which are one unit now; resume with the bucket_bytes and encode_bytes of the run");
  }
  return engaged[first];
}

void StepPlan::engage(const PlannedUnit& unit) {
  for (const int id : unit.segments) engaged_.data<int64_t>()[id] = 1;
}

}  // namespace wisp
