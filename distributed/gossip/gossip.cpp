#include "distributed/gossip/gossip.h"

namespace wisp {
namespace {

std::vector<Method> told_units(const std::shared_ptr<GossipMethod>& method,
                               const std::shared_ptr<const Mixing>& mixing,
                               std::span<const std::shared_ptr<const Code>> codes,
                               const GossipOptions& options) {
  std::vector<Method> units;
  for (const std::shared_ptr<const Code>& code : codes)
    units.push_back({.compressor = std::make_unique<ToldUnit>(method, mixing, code, options.guard),
                     .scope = options.scope});
  return units;
}

}  // namespace

Gossip::Gossip(const SynchronizerSite& site, std::shared_ptr<GossipMethod> method,
               std::shared_ptr<const Mixing> mixing,
               std::span<const std::shared_ptr<const Code>> codes, const std::vector<int>& code_of,
               const GossipOptions& options)
    : site_(site),
      mixing_(std::move(mixing)),
      method_(std::move(method)),
      options_(options),
      told_units_(told_units(method_, mixing_, codes, options)),
      units_(site.communicator, site.comm, site_.parameters, compressors_of(told_units_),
             make_cut(site_.parameters.segments(), size_of(site_.parameters.dtype()), code_of,
                      cut_methods(told_units_), options.buckets, site_.comm.stream.device()),
             false, mixing_->neighbours(site.communicator.rank())),
      told_({1}, DType::i64) {}

void Gossip::begin(const StepInfo& info, Courier& courier) {
  StepInfo with_ratio = info;
  with_ratio.ratio = options_.ratio ? options_.ratio(info.epoch) : 1.0;
  const int units = static_cast<int>(units_.cut().units.size());
  units_.begin(with_ratio, {.units = units, .all = units, .ahead = false});
  if (info.applied == 0) method_->start(arenas());
  if (!method_->steps_by_what_it_tells() || !has_news(info)) return;
  for (const int unit : units_in_order()) units_.encode(unit, 0, courier);
  method_->after_telling(arenas());
  courier.settle();
}

/// Tells nothing after a skipped step, or before the first update. All units are ready, because
/// the weights are there. While a bucket is on the wire, the next one is encoded.
void Gossip::travel(const StepInfo& info, Courier& courier) {
  if (has_news(info)) {
    if (!method_->steps_by_what_it_tells())
      for (const int unit : units_in_order()) courier.inbox().post(unit);
    units_.run([&](int unit) { units_.measured(unit); },
               [&](int unit) { units_.encode(unit, 0, courier); }, courier);
    units_.end(courier);
    *told_.data<int64_t>() = info.applied;
  }
  method_->after_hearing(arenas());
  courier.settle();
}

void Gossip::after_update(const StepInfo& info, Courier&) { method_->mix(arenas(), info.applied); }

/// The units in the order in which they travel.
std::vector<int> Gossip::units_in_order() const {
  std::vector<int> units;
  for (const Slot& slot : units_.step_plan().slots())
    units.insert(units.end(), slot.units.begin(), slot.units.end());
  return units;
}

std::vector<SavedState> Gossip::state() {
  std::vector<SavedState> saved = units_.memory().state();
  saved.push_back(
      {.name = "told", .tensor = told_, .sharing = Sharing::shared, .check = check_counts});
  return saved;
}

GossipArenas Gossip::arenas() const {
  FlatParameters& parameters = site_.parameters;
  GossipArenas arenas{site_.comm.stream, parameters.grad().numel(),
                      parameters.weight().data<float>()};
  for (const std::string& name : method_->arenas())
    arenas.own.push_back(parameters.state(name).data<float>());
  return arenas;
}

}  // namespace wisp
