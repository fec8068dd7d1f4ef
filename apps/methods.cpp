#include "apps/methods.h"

#include <algorithm>
#include <map>

#include "compression/policy.h"
#include "compression/ratio_schedule.h"
#include "core/error.h"

namespace wisp {
namespace {

std::unique_ptr<Compressor> make_compressor(Config& config, const std::string& name,
                                            const TrainOptions& options) {
  const OptimizerOptions& o = options.optimizer;
  const CompressorSetup setup{options.workers, o.momentum(), !o.is_adamw() && o.sgd.nesterov,
                              o.weight_decay()};
  const std::string what = concat("compression.method (", config.where("compression.method"), ")");
  return CompressorRegistry::instance().find(what, name).make(config, setup);
}

Scope bind_scope(Config& config) {
  std::string scope = "layer";
  config.bind("compression.scope", scope, "what a selection is taken over: layer, bucket or model");
  WISP_CHECK(scope == "layer" || scope == "bucket" || scope == "model",
             config.where("compression.scope"), ": unknown compression.scope '", scope,
             "'; known: bucket, layer, model");
  if (scope == "bucket") return Scope::bucket;
  return scope == "model" ? Scope::model : Scope::layer;
}

/// `what` (momentum, weight_decay) is applied to a segment exactly once: by the method, which takes
/// the optimizer's value, or by the optimizer, whose `key` holds it. `optimizer_applies`: it does,
/// to what the method leaves.
void check_home(const Config& config, const std::string& name, const std::string& what,
                const std::string& key, Home home, bool optimizer_applies, double value) {
  if (value == 0.0) return;
  const std::string own = "compression." + what;
  const std::string given = concat(key, " = ", value, " (", config.where(key), ")");
  WISP_CHECK(!config.given(own), config.where(own), ": ", what, " has two homes, ", own, " and ",
             given, "; ", name,
             home == Home::compressor ? " applies the optimizer's by itself"
                                      : " leaves it to the optimizer",
             ": remove ", own);
  WISP_CHECK(home != Home::compressor || !optimizer_applies, "method ", name, " applies ", what,
             " by itself and the optimizer would apply ", given, " once more; set it to 0");
  WISP_CHECK(home != Home::optimizer || optimizer_applies, "method ", name,
             " leaves updates to which nobody would apply ", given, "; set it to 0");
}

void check(const Config& config, const std::string& name, const Traits& traits, Scope scope,
           const TrainOptions& options) {
  WISP_CHECK(std::count(traits.scopes.begin(), traits.scopes.end(), scope) > 0,
             config.where("compression.scope"), ": method ", name,
             " does not work at this compression.scope");
  WISP_CHECK(wide_of(options.compute()) == DType::f32, config.where("train.precision"), ": method ",
             name, " works on f32 gradients, not with train.precision = \"", options.precision,
             "\"");
  const OptimizerOptions& o = options.optimizer;
  if (o.is_adamw()) {
    WISP_CHECK(traits.result != UpdateRule::update, config.where("optimizer.kind"), ": method ",
               name,
               " leaves finished updates, which Adam could not divide by its second moment; "
               "use optimizer.kind = \"sgd\" or another method");
  } else {
    WISP_CHECK(traits.result != UpdateRule::momentum, config.where("optimizer.kind"), ": method ",
               name,
               " leaves Adam's first moment, over a second one that stands still; use "
               "optimizer.kind = \"adamw\"");
    WISP_CHECK(traits.momentum != Home::compressor || o.sgd.dampening == 0.0,
               config.where("optimizer.dampening"), ": method ", name,
               " applies the momentum by itself and knows no dampening; set optimizer.dampening to "
               "0, not ",
               o.sgd.dampening);
  }
  check_home(config, name, "momentum", o.is_adamw() ? "optimizer.beta1" : "optimizer.momentum",
             traits.momentum, traits.result == UpdateRule::gradient, o.momentum());
  check_home(config, name, "weight_decay", "optimizer.weight_decay", traits.decay,
             traits.result != UpdateRule::update, o.weight_decay());
}

}  // namespace

Methods choose_methods(Config& config, const TrainOptions& options,
                       std::span<const Segment> segments) {
  std::string method = "none";
  config.bind("compression.method", method, "how gradients travel; `wisp methods` lists them");
  const Scope scope = bind_scope(config);
  const std::vector<PolicyRule> rules = read_policy(config);

  Methods chosen;
  std::map<std::string, int> index{{"none", kDense}};
  const auto add = [&](const std::string& name) {
    if (index.count(name)) return;
    std::unique_ptr<Compressor> compressor = make_compressor(config, name, options);
    index[name] = compressor ? static_cast<int>(chosen.methods.size()) : kDense;
    if (!compressor) return;
    check(config, name, compressor->traits(), scope, options);
    chosen.methods.push_back({name, std::move(compressor), scope});
  };
  add(method);
  for (const PolicyRule& rule : rules) add(rule.method);

  const int first = index.at(method);
  const bool dense_1d =
      first == kDense || chosen.methods[static_cast<size_t>(first)].compressor->traits().dense_1d;
  for (const std::string& name : choose_methods(segments, rules, method, dense_1d)) {
    const Segment& segment = segments[chosen.method_of.size()];
    int found = index.at(name);
    if (found != kDense) {
      const std::string refusal =
          chosen.methods[static_cast<size_t>(found)].compressor->refusal(field_of(segment));
      if (!refusal.empty()) {
        chosen.refusals.push_back(segment.name + " stays dense: " + refusal);
        found = kDense;
      }
    }
    chosen.method_of.push_back(found);
  }
  const bool sparse = std::any_of(chosen.methods.begin(), chosen.methods.end(),
                                  [](const Method& m) { return m.compressor->traits().sparse; });
  if (sparse)
    chosen.ratio = [schedule = RatioSchedule(config)](double epoch) { return schedule.at(epoch); };
  return chosen;
}

}  // namespace wisp
