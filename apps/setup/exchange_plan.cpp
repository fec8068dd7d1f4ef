#include "apps/setup/exchange_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "distributed/exchange/message_traffic.h"
#include "distributed/gossip/told_unit.h"

namespace wisp {
namespace {

constexpr int64_t kLate = int64_t{1} << 40;  // a step after any method's own warm-up

int64_t state_bytes(const Compressor& compressor, const UnitSpec& spec, int workers) {
  int64_t bytes = 0;
  for (const StateSpec& state : compressor.state(spec, workers))
    bytes += (state.per_element ? spec.numel : state.shape.numel()) * size_of(state.dtype);
  return bytes;
}

/// "a, b, c and 4 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kNamed = 3;
  const size_t named = std::min(names.size(), kNamed);
  const std::string text = fmt::format("{}", fmt::join(std::span(names).first(named), ", "));
  return names.size() == named ? text : fmt::format("{} and {} more", text, names.size() - named);
}

class Planner {
 public:
  Planner(const Methods& methods, const TrainOptions& options, std::span<const Segment> segments)
      : methods_(methods),
        options_(options),
        element_bytes_(size_of(wide_of(options.compute()))),
        cut_(make_cut(segments, element_bytes_, methods.method_of, cut_methods(methods.methods),
                      options.buckets, options.target())) {
    exchange_.remarks = methods.remarks;
    LayerPlan plan;  // what all layers share until describe() adds what units have
    if (const SynchronizerRecipe* recipe = methods.recipe.get()) {
      exchange_.neighbourhood = recipe->neighbourhood;
      exchange_.period = recipe->period;
      plan.method = methods.names;
      plan.exact = true;
      plan.rounds = {recipe->neighbourhood ? Collective::neighbours : Collective::all_reduce};
    }
    for (const Segment& segment : segments) {
      plan.name = segment.name;
      plan.kind = segment.kind;
      plan.shape = segment.shape;
      plan.numel = segment.numel;
      plan.bytes_sent = plain(segment.numel);
      plan.bytes_dense = dense(segment.numel);
      exchange_.layers.push_back(plan);
    }
    if (methods.recipe) return;  // what is plain travels in no bucket
    for (size_t bucket = 0; bucket < cut_.buckets.size(); ++bucket)
      for (const int id : cut_.buckets[bucket].dense) layer(id).bucket = static_cast<int>(bucket);
  }

  ExchangePlan run() {
    for (size_t i = 0; i < methods_.phases.size(); ++i) add_phase(i);
    for (const CutUnit& unit : cut_.units)
      exchange_.state_bytes +=
          state_bytes(compressor_of(unit.method), unit.spec(), options_.workers);
    for (size_t m = 0; m < methods_.methods.size(); ++m) remark_on_layers(static_cast<int>(m));
    const PhasePlan& last = exchange_.phases.back();
    if (methods_.recipe && last.bytes_sent > last.bytes_dense)
      exchange_.remarks.push_back(fmt::format(
          "{} sends {:.0f} bytes a step and worker, more than a dense all-reduce of the "
          "gradients, {:.0f}",
          methods_.names, last.bytes_sent, last.bytes_dense));
    return std::move(exchange_);
  }

 private:
  const Compressor& compressor_of(int method) const {
    return *methods_.methods[static_cast<size_t>(method)].compressor;
  }
  const std::string& name_of(int method) const {
    return methods_.methods[static_cast<size_t>(method)].name;
  }
  LayerPlan& layer(int id) { return exchange_.layers[static_cast<size_t>(id)]; }
  double dense(int64_t numel) const {
    return bytes_on_wire(Collective::all_reduce, static_cast<double>(numel * element_bytes_),
                         options_.workers);
  }

  /// Bytes of elements that no method compresses.
  double plain(int64_t numel) const {
    if (!methods_.recipe) return dense(numel);
    if (neighbours()) return neighbours()->degree * static_cast<double>(numel * element_bytes_);
    return dense(numel) * methods_.recipe->arenas / static_cast<double>(methods_.recipe->period);
  }
  const std::optional<Neighbourhood>& neighbours() const { return exchange_.neighbourhood; }
  const char* plain_word() const { return neighbours() ? "exact" : "dense"; }
  double sent(const std::vector<Message>& messages) const {
    return bytes_on_wire(messages, options_.workers) * (neighbours() ? neighbours()->degree : 1);
  }

  /// Bytes of a unit that is not compressed.
  double plain(const CutUnit& unit) const {
    if (!neighbours()) return plain(unit.numel);
    return sent({{.kind = Collective::neighbours, .bytes = unit.numel * element_bytes_}});
  }

  /// The messages that a unit sends in a step if it is compressed.
  std::vector<Message> messages_of(const CutUnit& unit, const StepInfo& info) const {
    std::vector<Message> messages;
    plan(unit, info, true, messages);
    return messages;
  }
  UnitPath plan(const CutUnit& unit, const StepInfo& info, bool engaged,
                std::vector<Message>& messages) const {
    const Compressor& compressor = compressor_of(unit.method);
    return plan_unit(compressor, compressor.traits(), unit.spec(), unit.numel * element_bytes_,
                     info, engaged, options_.guard && !neighbours(), messages);
  }
  /// Whether a unit that may be compressed would send more than plain, in the mean of a period.
  bool sends_too_much(const CutUnit& unit, const StepInfo& info) const {
    if (neighbours()) return sends_more_than_exact(messages_of(unit, info).front(), unit.spec());
    return is_more_than_dense(mean_bytes(compressor_of(unit.method), unit.spec(), info),
                              unit.numel * element_bytes_, options_.workers);
  }

  /// The path of a unit in the steps of a phase. A unit of gossip is never dense, but may be exact.
  UnitPath path_of(const CutUnit& unit, const StepInfo& info) const {
    std::vector<Message> messages;
    const UnitPath path = plan(unit, info, false, messages);
    if (!neighbours()) return path;
    if (methods_.ratio && info.ratio >= 1.0 &&
        messages.front().bytes == unit.numel * element_bytes_)
      return UnitPath::warm_up;
    const bool refused = options_.guard && sends_too_much(unit, info);
    return refused ? UnitPath::more_than_dense : UnitPath::compressed;
  }

  /// A unit's steps until its messages repeat.
  struct PeriodPlan {
    UnitPath path = UnitPath::compressed;
    double bytes = 0.0, bytes_compressed = 0.0;  // means
    std::vector<double> by_step;                 // `bytes` is their mean
    std::vector<Message> messages;               // messages of the last step, if it is compressed
    bool sends_too_much = false;
  };
  PeriodPlan plan_period(const CutUnit& unit, size_t phase) const {
    PeriodPlan plan;
    plan.path = path_of(unit, info_of(phase, 0));
    const int64_t period = compressor_of(unit.method).period();
    for (int64_t step = 0; step < period; ++step) {
      plan.messages = messages_of(unit, info_of(phase, step));
      const double compressed = sent(plan.messages);
      plan.by_step.push_back(plan.path == UnitPath::compressed ? compressed : plain(unit));
      plan.bytes_compressed += compressed / static_cast<double>(period);
      plan.bytes += plan.by_step.back() / static_cast<double>(period);
    }
    plan.sends_too_much = plan.path != UnitPath::warm_up && sends_too_much(unit, info_of(phase, 0));
    return plan;
  }

  /// Adds a unit's steps to those of others, over the least common multiple of their periods.
  static void add_steps(std::vector<double>& all, const std::vector<double>& of_unit) {
    std::vector<double> sum(std::lcm(all.size(), of_unit.size()));
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] = all[i % all.size()] + of_unit[i % of_unit.size()];
    all = std::move(sum);
  }

  /// Step `step` in the middle of a phase, as the borders of phases are not exact.
  StepInfo info_of(size_t phase, int64_t step) const {
    const bool last = phase + 1 == methods_.phases.size();
    const double begin = methods_.phases[phase];
    const double end = last ? begin + 1.0 : methods_.phases[phase + 1];
    StepInfo info{.step = kLate + step,
                  .applied = kLate + step,
                  .epoch = 0.5 * (begin + end),
                  .ranks = options_.workers,
                  .summands = options_.workers,
                  .lr = options_.optimizer.lr,
                  .last_lr = options_.optimizer.lr,
                  .seed = static_cast<uint64_t>(options_.seed)};
    if (methods_.ratio) info.ratio = methods_.ratio(info.epoch);
    return info;
  }

  void add_phase(size_t index) {
    PhasePlan phase{.epoch = methods_.phases[index],
                    .ratio = info_of(index, 0).ratio,
                    .units = static_cast<int>(cut_.units.size())};
    for (const LayerPlan& layer : exchange_.layers) {
      phase.bytes_dense += dense(layer.numel);
      phase.bytes_sent += plain(layer.numel);
    }
    const bool last = index + 1 == methods_.phases.size();
    struct Refused {
      double sent = 0.0, dense = 0.0;
      std::vector<std::string> names;
    };
    std::map<int, Refused> refused;  // by method
    std::vector<double> by_step = {phase.bytes_sent};
    for (size_t i = 0; i < cut_.units.size(); ++i) {
      const CutUnit& unit = cut_.units[i];
      const PeriodPlan plan = plan_period(unit, index);
      add_steps(by_step, plan.by_step);
      for (double& step : by_step) step -= plain(unit.numel);
      phase.warm_up += plan.path == UnitPath::warm_up;
      phase.more_than_dense += plan.path == UnitPath::more_than_dense;
      phase.bytes_sent += plan.bytes - plain(unit.numel);
      if (plan.sends_too_much) {
        Refused& of_method = refused[unit.method];
        of_method.sent += plan.bytes_compressed;
        of_method.dense += plain(unit);
        for (const int id : unit.segments) of_method.names.push_back(layer(id).name);
      }
      if (!last) continue;
      describe(static_cast<int>(i), plan.path, plan.messages);
      method_bytes_[unit.method] += plan.bytes;
    }
    const std::string when = fmt::format(
        "{}, {}",
        methods_.phases.size() == 1 ? "all epochs"
        : last                      ? fmt::format("from epoch {:.4g} on", phase.epoch)
               : fmt::format("epochs {:.4g} to {:.4g}", phase.epoch, methods_.phases[index + 1]),
        methods_.ratio ? fmt::format("ratio {:.4g}", phase.ratio)
                       : fmt::format("{} workers", options_.workers));
    for (const auto& [method, of_method] : refused) {
      exchange_.remarks.push_back(fmt::format(
          "{}: {} would send {:.0f} bytes a step and worker{}, {} {:.0f}; {}: {}", when,
          name_of(method), of_method.sent, compressor_of(method).period() > 1 ? " on average" : "",
          plain_word(), of_method.dense,
          options_.guard ? fmt::format("these layers go {}", plain_word())
                         : "compression.guard is off, these layers send it",
          some_of(of_method.names)));
    }
    phase.bytes_most = std::ranges::max(by_step) * static_cast<double>(exchange_.period);
    remark_on_peak(phase, when);
    exchange_.phases.push_back(phase);
  }

  /// Adds a remark if only single steps send more than dense.
  void remark_on_peak(const PhasePlan& phase, const std::string& when) {
    const double dense = phase.bytes_dense + 0.5;  // sums are rounded
    if (phase.bytes_most <= dense || phase.bytes_sent > dense) return;
    exchange_.remarks.push_back(fmt::format(
        "{}: single steps of {} send up to {:.0f} bytes a worker, more than dense, {:.0f}; on "
        "average a step sends {:.0f}",
        when, methods_.names, phase.bytes_most, phase.bytes_dense, phase.bytes_sent));
  }

  /// Fills in the layers of a unit, for the last phase.
  void describe(int index, UnitPath path, const std::vector<Message>& messages) {
    const CutUnit& unit = cut_.units[static_cast<size_t>(index)];
    const Compressor& compressor = compressor_of(unit.method);
    const bool joined = unit.fields.size() != unit.segments.size();
    std::vector<Message> alone;
    for (size_t i = 0; i < unit.segments.size(); ++i) {
      LayerPlan& layer = this->layer(unit.segments[i]);
      layer.method = name_of(unit.method);
      layer.path = path;
      layer.unit = index;
      layer.bucket = unit.bucket;
      const UnitSpec spec = joined ? unit.spec() : UnitSpec{{&unit.fields[i], 1}, layer.numel};
      const double share =
          joined ? static_cast<double>(layer.numel) / static_cast<double>(unit.numel) : 1.0;
      layer.state_bytes = static_cast<int64_t>(
          share * static_cast<double>(state_bytes(compressor, spec, options_.workers)));
      layer.exact = neighbours() && (path != UnitPath::compressed ||
                                     messages.front().bytes == unit.numel * element_bytes_);
      if (path != UnitPath::compressed) continue;
      layer.bytes_sent = 0.0;
      const int64_t period = compressor.period();
      for (int64_t step = 0; step < period; ++step) {
        plan_unit(compressor, compressor.traits(), spec, 0,
                  info_of(methods_.phases.size() - 1, step), true, false, alone);
        layer.bytes_sent += share * sent(alone) / static_cast<double>(period);
      }
      layer.rounds.clear();
      for (const Message& message : messages) layer.rounds.push_back(message.kind);
    }
  }

  /// Adds a remark for a method with a warm-up of its own, which is no phase of the plan.
  void remark_on_late_start(int method) {
    const Compressor& compressor = compressor_of(method);
    if (compressor.started({.ranks = options_.workers, .summands = options_.workers})) return;
    double sent = 0.0;
    for (const CutUnit& unit : cut_.units) {
      if (unit.method == method) sent += dense(unit.numel);
    }
    exchange_.remarks.push_back(
        fmt::format("{} starts after a dense warm-up of its own, in which its layers send {:.0f} "
                    "bytes a step and worker; then {:.0f}{}",
                    name_of(method), sent, method_bytes_[method],
                    compressor.period() > 1 ? " on average" : ""));
  }

  /// Adds the remarks that a method and its traits have for its layers.
  void remark_on_layers(int method) {
    const Compressor& compressor = compressor_of(method);
    const Traits traits = compressor.traits();
    std::map<std::string, std::vector<std::string>> said;
    for (const CutUnit& unit : cut_.units) {
      if (unit.method != method) continue;
      const std::string& first = layer(unit.segments.front()).name;
      if (const std::string remark = compressor.remark(unit.spec()); !remark.empty())
        said[remark].push_back(first);
      for (const int id : unit.segments) {
        if (layer(id).kind == "embedding" && !traits.represents_zero)
          said
              ["it does not keep zeros: rows of an embedding that no sample used would change in "
               "every step; give the embedding a rule of compression.policy"]
                  .push_back(layer(id).name);
      }
    }
    remark_on_late_start(method);
    for (const auto& [remark, names] : said)
      exchange_.remarks.push_back(
          fmt::format("{}: {} ({})", name_of(method), remark, some_of(names)));
  }

  const Methods& methods_;
  const TrainOptions& options_;
  const int64_t element_bytes_;
  const Cut cut_;
  std::map<int, double> method_bytes_;  // mean per step in the last phase
  ExchangePlan exchange_;
};

}  // namespace

ExchangePlan plan_exchange(const Methods& methods, const TrainOptions& options,
                           std::span<const Segment> segments) {
  return Planner(methods, options, segments).run();
}

}  // namespace wisp
