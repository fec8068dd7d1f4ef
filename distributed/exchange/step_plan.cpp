#include "distributed/exchange/step_plan.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/hash.h"
#include "distributed/exchange/message_traffic.h"

namespace wisp {
namespace {

/// Hash of the sizes of messages and pieces. Reduced messages have no header, so ranks whose sizes
/// differ find it out here.
uint64_t hash_sizes(std::span<const UnitRounds> units, int64_t piece_bytes, uint64_t seed) {
  seed = hash_number(static_cast<uint64_t>(piece_bytes), seed);
  for (const UnitRounds& unit : units) {
    for (const Message& message : unit.messages)
      seed = hash_number(static_cast<uint64_t>(message.bytes), seed);
  }
  return seed;
}

std::vector<Message> messages_of(const Compressor& compressor, const UnitSpec& spec,
                                 const StepInfo& info) {
  std::vector<Message> messages;
  for (int round = 0; round < compressor.rounds(spec, info); ++round) {
    const Message& message = messages.emplace_back(compressor.message(spec, info, round));
    WISP_CHECK(!message.variable || message.bytes <= UINT32_MAX, "a unit of ", spec.numel,
               " elements may send ", message.bytes,
               " bytes in a message of variable size, whose size is told in 32 bits: at most ",
               UINT32_MAX,
               "; use a smaller compression.encode_bytes or bucket_bytes, or send a parameter of "
               "this size dense, "
               "by a rule of compression.policy");
  }
  return messages;
}

}  // namespace

double mean_bytes(const Compressor& compressor, const UnitSpec& spec, StepInfo info) {
  info.rank = 0;
  const int64_t period = compressor.period();
  double bytes = 0.0;
  for (int64_t step = 0; step < period; ++step, ++info.step, ++info.applied)
    bytes += bytes_on_wire(messages_of(compressor, spec, info), info.ranks);
  return bytes / static_cast<double>(period);
}

UnitPath plan_unit(const Compressor& compressor, const Traits& traits, const UnitSpec& spec,
                   int64_t raw_bytes, const StepInfo& info, bool engaged, bool guard,
                   std::vector<Message>& messages) {
  messages.clear();
  const bool warm = compressor.started(info) && (!traits.sparse || info.ratio < 1.0);
  if (!engaged && !warm) return UnitPath::warm_up;
  messages = messages_of(compressor, spec, info);
  const bool dense = !engaged && guard &&
                     is_more_than_dense(mean_bytes(compressor, spec, info), raw_bytes, info.ranks);
  return dense ? UnitPath::more_than_dense : UnitPath::compressed;
}

StepPlan::StepPlan(const FlatParameters& parameters, const Cut& cut,
                   std::span<Compressor* const> compressors, bool guard)
    : parameters_(parameters),
      cut_(cut),
      compressors_(compressors),
      guard_(guard),
      rounds_(cut.units.size()),
      next_rounds_(cut.units.size()),
      rules_(parameters.segments().size(), UpdateRule::gradient),
      engaged_({static_cast<int64_t>(parameters.segments().size())}, DType::i64) {
  for (const CutUnit& unit : cut.units)
    traits_.push_back(compressors[static_cast<size_t>(unit.method)]->traits());
}

bool StepPlan::make(const StepInfo& info) {
  for (size_t i = 0; i < next_rounds_.size(); ++i) {
    const CutUnit& unit = cut_.units[i];
    UnitRounds& rounds = next_rounds_[i];
    const UnitPath path =
        plan_unit(*compressors_[static_cast<size_t>(unit.method)], traits_[i], unit.spec(),
                  unit.numel * size_of(parameters_.dtype()), info,
                  engaged_workers(unit) == info.summands, guard_, rounds.messages);
    rounds.compressed = path == UnitPath::compressed;
    if (!rounds.compressed) rounds.messages.clear();
  }
  if (!slots_.empty() && next_rounds_ == rounds_) return false;
  std::swap(rounds_, next_rounds_);
  slots_ = make_slots(cut_, rounds_, parameters_.dtype());
  hash_ = hash_slots(slots_, hash_sizes(rounds_, cut_.bucket_bytes, cut_.hash));
  for (size_t i = 0; i < rounds_.size(); ++i) {
    for (const int id : cut_.units[i].segments) {
      rules_[static_cast<size_t>(id)] =
          rounds_[i].compressed ? traits_[i].result : UpdateRule::gradient;
    }
  }
  return true;
}

int StepPlan::compressed_units() const {
  return static_cast<int>(std::ranges::count(rounds_, true, &UnitRounds::compressed));
}

/// Number of workers that engaged the unit. Segments can differ after a checkpoint of another cut.
int64_t StepPlan::engaged_workers(const CutUnit& unit) const {
  const int64_t* engaged = engaged_.data<int64_t>();
  const int first = unit.segments.front();
  for (const int id : unit.segments) {
    WISP_CHECK(
        engaged[id] == engaged[first], "the checkpoint compressed ",
        parameters_.segment(engaged[id] ? id : first).name, " but not ",
        parameters_.segment(engaged[id] ? first : id).name,
        ", which this run would compress together; resume with the compression.bucket_bytes "
        "and compression.encode_bytes that the run had (their defaults are larger on a GPU)");
  }
  return engaged[first];
}

void StepPlan::engage(const CutUnit& unit, int workers) {
  for (const int id : unit.segments) engaged_.data<int64_t>()[id] = workers;
}

}  // namespace wisp
