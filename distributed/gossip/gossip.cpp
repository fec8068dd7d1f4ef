#include "distributed/gossip/gossip.h"

#include "core/clock.h"
#include "core/error.h"

namespace wisp {
namespace {

std::vector<std::unique_ptr<ToldUnit>> told_units(
    const std::shared_ptr<GossipMethod>& method, const std::shared_ptr<const Mixing>& mixing,
    std::span<const std::shared_ptr<const Code>> codes, bool guard) {
  std::vector<std::unique_ptr<ToldUnit>> units;
  for (const std::shared_ptr<const Code>& code : codes)
    units.push_back(std::make_unique<ToldUnit>(method, mixing, code, guard));
  return units;
}

std::vector<Compressor*> pointers(const std::vector<std::unique_ptr<ToldUnit>>& units) {
  std::vector<Compressor*> compressors;
  for (const auto& unit : units) compressors.push_back(unit.get());
  return compressors;
}

}  // namespace

Gossip::Gossip(const SynchronizerSite& site, std::shared_ptr<GossipMethod> method,
               std::shared_ptr<const Mixing> mixing,
               std::span<const std::shared_ptr<const Code>> codes, const std::vector<int>& code_of,
               const GossipOptions& options)
    : comm_(site.comm),
      parameters_(site.parameters),
      rank_(site.communicator.rank()),
      mixing_(std::move(mixing)),
      method_(std::move(method)),
      options_(options),
      told_units_(told_units(method_, mixing_, codes, options.guard)),
      compressors_(pointers(told_units_)),
      plan_(make_plan(parameters_.segments(), size_of(parameters_.dtype()), code_of,
                      std::vector<PlannedMethod>(compressors_.size(), {.scope = options.scope}),
                      options.buckets)),
      memory_(comm_, parameters_, plan_, compressors_, rank_, site.communicator.size()),
      wire_(site.communicator, comm_, memory_, parameters_, mixing_->neighbours(rank_)),
      step_plan_(comm_, parameters_, plan_, compressors_, false),
      told_(comm_.zeros({1}, DType::i64)) {}

void Gossip::begin(const StepInfo& info, Courier& courier) {
  info_ = info;
  info_.ratio = options_.ratio ? options_.ratio(info.epoch) : 1.0;
  if (step_plan_.make(info_)) wire_.fit(step_plan_.slots(), step_plan_.rounds());
  memory_.fit(step_plan_.rounds(), compressors_, info_);
  if (info.applied == 0) method_->start(arenas());
  if (!method_->steps_by_what_it_tells() || !has_news(info)) return;
  for (const Slot& slot : step_plan_.slots()) encode(slot, courier);
  method_->after_telling(arenas());
  comm_.stream.synchronize();
}

/// Nothing is told of a step that was skipped, nor before the first update. While a bucket is on
/// the wire, the next one is encoded.
void Gossip::travel(const StepInfo& info, Courier& courier) {
  if (has_news(info)) {
    const Slot* before = nullptr;
    for (const Slot& slot : step_plan_.slots()) {
      if (!method_->steps_by_what_it_tells()) encode(slot, courier);
      if (before) finish(*before, courier);
      wire_.start(slot, step_plan_.rounds(), info_.step);
      before = &slot;
    }
    finish(*before, courier);
    *told_.data<int64_t>() = info.applied;
  }
  method_->after_hearing(arenas());
  comm_.stream.synchronize();
}

void Gossip::after_update(const StepInfo& info, Courier&) { method_->mix(arenas(), info.applied); }

void Gossip::encode(const Slot& slot, Courier& courier) {
  for (const int index : slot.units) {
    const PlannedUnit& planned = plan_.units[static_cast<size_t>(index)];
    const Message& message = step_plan_.rounds()[static_cast<size_t>(index)].messages[0];
    const std::span<const Outlet> outlets = memory_.outlets(index, message);
    const double begin = now_us();
    compressors_[static_cast<size_t>(planned.method)]->encode(comm_, memory_.unit(index), info_, 0,
                                                              outlets);
    comm_.stream.synchronize();
    const double end = now_us();
    courier.cost.encode_ms += (end - begin) * 1e-3;
    if (courier.trace().records(info_.step))
      courier.trace().span(Lane::encode, planned.name(parameters_.segments()), begin, end,
                           info_.step, memory_.used(index, message, 0));
  }
}

/// The slot that is on the wire.
void Gossip::finish(const Slot& slot, Courier& courier) {
  do courier.await(wire_.pending());
  while (!wire_.advance());
  courier.cost.bytes_encoded += wire_.encoded_bytes();
  courier.cost.encode_ms += wire_.seal_us() * 1e-3;
  courier.cost.decode_ms += wire_.check_us() * 1e-3;
  courier.count(wire_.transfer(), wire_.wire_us(), concat("bucket ", slot.bucket), info_.step);
  for (size_t i = 0; i < slot.units.size(); ++i) {
    const int index = slot.units[i];
    const PlannedUnit& planned = plan_.units[static_cast<size_t>(index)];
    const double begin = now_us();
    decode_slot(slot, info_.step, [&] {
      compressors_[static_cast<size_t>(planned.method)]->decode(comm_, memory_.unit(index), info_,
                                                                0, wire_.payloads(i));
      comm_.stream.synchronize();
    });
    const double end = now_us();
    courier.cost.decode_ms += (end - begin) * 1e-3;
    courier.trace().span(Lane::decode, planned.name(parameters_.segments()), begin, end,
                         info_.step);
  }
}

std::vector<SavedState> Gossip::state() {
  std::vector<SavedState> saved(memory_.state().begin(), memory_.state().end());
  saved.push_back({"told", told_, Sharing::shared});
  return saved;
}

GossipArenas Gossip::arenas() const {
  GossipArenas arenas{
      comm_.stream, parameters_.grad().numel(), parameters_.weight().data<float>(), {}};
  for (const std::string& name : method_->arenas())
    arenas.own.push_back(parameters_.state(name).data<float>());
  return arenas;
}

}  // namespace wisp
