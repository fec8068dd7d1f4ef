#include "apps/setup/methods.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compression/policy.h"
#include "compression/ratio_schedule.h"
#include "core/base/error.h"

namespace wisp {
namespace {

CompressorSetup setup_of(const TrainOptions& options) {
  const OptimizerRecipe& recipe = options.optimizer.recipe;
  return {.workers = options.workers,
          .momentum = recipe.momentum.rate,
          .nesterov = recipe.momentum.nesterov,
          .weight_decay = options.optimizer.weight_decay,
          .beta2 = recipe.beta2.value_or(0.0)};
}

const CompressorRegistry::Entry& find_compressor(const Config& config, const std::string& name) {
  const auto& compressors = CompressorRegistry::instance();
  if (compressors.entries().count(name)) return compressors.entries().at(name);
  WISP_CHECK(
      SynchronizerRegistry::instance().entries().count(name) == 0,
      config.where("compression.policy"), ": ", name,
      " exchanges the weights of the whole run, so a rule of compression.policy cannot choose "
      "it; set it as compression.method");
  throw Error(concat("unknown compression.method (", config.where("compression.method"), ") '",
                     name, "'; known: ", fmt::format("{}", fmt::join(method_names(), ", "))));
}

/// The synchronizer that `name` stands for; null for gradient averaging.
std::unique_ptr<SynchronizerRecipe> make_recipe(Config& config, const std::string& name,
                                                const TrainOptions& options, Scope scope,
                                                std::span<const PolicyRule> rules,
                                                std::span<const Segment> segments) {
  const auto& entries = SynchronizerRegistry::instance().entries();
  if (entries.count(name) == 0) return nullptr;
  WISP_CHECK(wide_of(options.compute()) == DType::f32, config.where("train.precision"), ": method ",
             name, " works on f32 weights, not with train.precision = \"", options.precision, "\"");
  return entries.at(name).make(config, {.workers = options.workers,
                                        .segments = segments,
                                        .rules = rules,
                                        .scope = scope,
                                        .codes = setup_of(options),
                                        .buckets = options.buckets,
                                        .device = options.target(),
                                        .guard = options.guard,
                                        .optimizer_arenas = options.optimizer.recipe.arenas,
                                        .step = {options.clip, options.overlap}});
}

std::unique_ptr<Compressor> make_compressor(Config& config, const std::string& name,
                                            const TrainOptions& options) {
  return find_compressor(config, name).make(config, setup_of(options));
}

/// A rule's method. The rule's own options, if it has any, take precedence over the run's keys,
/// which are bound too.
std::unique_ptr<Compressor> make_compressor(Config& config, const PolicyRule& rule,
                                            const TrainOptions& options) {
  std::unique_ptr<Compressor> plain = make_compressor(config, rule.method, options);
  if (rule.options.given_values().empty()) return plain;
  Config own = config.with("compression.", rule.options);
  std::unique_ptr<Compressor> compressor = make_compressor(own, rule.method, options);
  Config run_wide;
  static_cast<void>(RatioSchedule(run_wide));
  const auto has = [](const Config& keys, const std::string& name) {
    return std::ranges::count(keys.keys(), name, &ConfigKey::name) > 0;
  };
  for (const auto& [option, value] : rule.options.given_values()) {
    const std::string key = "compression." + option;
    WISP_CHECK(!has(run_wide, key), rule.options.where(option), ": ", key,
               " holds for the whole run and cannot be set in a rule");
    WISP_CHECK(has(own, key), rule.options.where(option), ": method ", rule.method,
               " has no option '", option, "'; `wisp methods ", rule.method, "` lists them");
  }
  return compressor;
}

std::string text_of(const std::vector<Scope>& scopes) {
  constexpr const char* names[] = {"layer", "bucket", "model"};
  std::string text;
  for (const Scope scope : scopes)
    text += concat(text.empty() ? "" : " or ", names[static_cast<size_t>(scope)]);
  return text;
}

Scope bind_scope(Config& config) {
  Scope scope = Scope::layer;
  config.bind_choice("compression.scope", scope,
                     {{"layer", Scope::layer}, {"bucket", Scope::bucket}, {"model", Scope::model}},
                     "scope of a selection: layer, bucket or model");
  return scope;
}

/// Checks that `what` (momentum, weight_decay) is applied to a segment exactly once: by the method,
/// which takes the optimizer's value, or by the optimizer, whose `key` holds it.
/// `optimizer_applies`: the optimizer applies it to the method's result.
void check_home(const Config& config, const std::string& name, const std::string& what,
                const std::string& key, Home home, bool optimizer_applies, double value) {
  if (value == 0.0) return;
  const std::string own = "compression." + what;
  const std::string given = concat(key, " = ", value, " (", config.where(key), ")");
  WISP_CHECK(!config.given(own), config.where(own), ": ", own, " and ", given,
             " set the same thing; method ", name,
             home == Home::compressor ? " takes the value of the optimizer"
                                      : concat(" leaves ", what, " to the optimizer"),
             ": remove ", own);
  WISP_CHECK(home != Home::compressor || !optimizer_applies, "method ", name, " applies ", what,
             " by itself and the optimizer would apply ", given, " once more; set it to 0");
  WISP_CHECK(
      home != Home::optimizer || optimizer_applies, "method ", name,
      " returns updates instead of gradients, so neither the method nor the optimizer would apply ",
      given, "; set it to 0");
}

/// What is wrong with a method's result that optimizer `kind` does not accept.
std::string unusable(UpdateRule result, const std::string& kind) {
  switch (result) {
    case UpdateRule::update:
      return concat(" returns finished updates instead of gradients, which ", kind,
                    " cannot use; use optimizer.kind = \"sgd\" or another method");
    case UpdateRule::momentum:
      return " returns Adam's first moment and needs Adam's second one; use "
             "optimizer.kind = \"adamw\"";
    case UpdateRule::gradient:
      break;
  }
  return concat(" returns gradients, which ", kind, " cannot use");
}

void check(const Config& config, const std::string& name, const Traits& traits, Scope scope,
           const TrainOptions& options) {
  WISP_CHECK(std::ranges::count(traits.scopes, scope) > 0, config.where("compression.scope"),
             ": method ", name, " works with compression.scope = ", text_of(traits.scopes),
             " only");
  WISP_CHECK(wide_of(options.compute()) == DType::f32, config.where("train.precision"), ": method ",
             name, " works on f32 gradients, not with train.precision = \"", options.precision,
             "\"");
  WISP_CHECK(
      options.clip.norm == 0.0 || options.clip.where != ClipWhere::mean ||
          traits.clipping != Clipping::local_only,
      config.where("clip.where"), ": clip.where is mean, but method ", name,
      " has a residual or momentum that would lose the clipped part, or returns no gradient; "
      "use clip.where = \"auto\" or \"local\"");
  const OptimizerOptions& o = options.optimizer;
  const OptimizerRecipe::Momentum& momentum = o.recipe.momentum;
  WISP_CHECK(o.recipe.accepts(traits.result), config.where("optimizer.kind"), ": method ", name,
             unusable(traits.result, o.kind));
  WISP_CHECK(traits.momentum != Home::compressor || momentum.dampening == 0.0,
             config.where("optimizer.dampening"), ": method ", name,
             " applies the momentum itself, without dampening; optimizer.dampening is ",
             momentum.dampening, ", expected 0");
  check_home(config, name, "momentum", momentum.key, traits.momentum,
             traits.result == UpdateRule::gradient, momentum.rate);
  check_home(config, name, "weight_decay", "optimizer.weight_decay", traits.decay,
             traits.result != UpdateRule::update, o.weight_decay);
}

void remark_on_one_worker(const TrainOptions& options, Methods& chosen) {
  if (options.workers > 1 || chosen.names == "none") return;
  chosen.remarks.push_back(concat("a single worker exchanges nothing: compression.method ",
                                  chosen.names, " saves no bytes",
                                  chosen.recipe ? "" : ", but changes the gradients"));
}

/// Adds a remark on which gradient is clipped, and at which norm.
void remark_on_clipping(const Config& config, const TrainOptions& options, Methods& chosen) {
  const ClipOptions& clip = options.clip;
  if (clip.norm == 0.0) return;
  const bool own = chosen.recipe || clips_locally(clip, chosen.methods);
  if (!own) {
    chosen.remarks.push_back(
        concat("clip.norm = ", clip.norm, " bounds the mean gradient",
               config.given("clip.local_factor") ? "; clip.local_factor has no effect on it" : ""));
    return;
  }
  const double summands = chosen.recipe ? 1.0 : options.workers;
  const double factor = clip.local_factor > 0.0 ? clip.local_factor : std::sqrt(summands);
  chosen.remarks.push_back(
      concat("each worker's own gradient is clipped, at ", factor * clip.norm, " (", factor,
             " x clip.norm)",
             chosen.recipe ? "" : ", before it is compressed; no residual keeps the clipped part"));
  if (chosen.recipe || !options.overlap || clip.per_layer) return;
  const bool mean = std::ranges::all_of(chosen.methods, [](const Method& method) {
    return method.compressor->traits().clipping != Clipping::local_only;
  });
  chosen.remarks.push_back(
      concat("clip.scope = \"model\" needs the norm of a worker's whole gradient, so nothing is "
             "encoded or sent before backward ends; clip.scope = \"layer\" overlaps backward",
             mean ? ", and so does clip.where = \"mean\"" : ""));
}

}  // namespace

std::vector<std::string> method_names() {
  std::vector<std::string> names = CompressorRegistry::instance().names();
  std::ranges::copy(SynchronizerRegistry::instance().names(), std::back_inserter(names));
  std::ranges::sort(names);
  return names;
}

BoundMethod bind_method(const std::string& name) {
  Config config;
  const auto& synchronizers = SynchronizerRegistry::instance().entries();
  if (synchronizers.count(name)) {
    const auto& entry = synchronizers.at(name);
    entry.make(config, {});
    return {entry.summary, config.keys()};
  }
  const auto& entry = find_compressor(config, name);
  const std::unique_ptr<Compressor> compressor = entry.make(config, {});
  if (compressor && compressor->traits().sparse) RatioSchedule schedule(config);
  return {entry.summary, config.keys()};
}

bool is_method_key(const std::string& key) {
  return std::ranges::any_of(method_names(), [&](const std::string& name) {
    return std::ranges::count(bind_method(name).keys, key, &ConfigKey::name) > 0;
  });
}

std::unique_ptr<Synchronizer> Methods::make(const SynchronizerSite& site,
                                            const TrainOptions& options) {
  if (recipe) return recipe->make(site);
  const AveragingOptions averaging{.buckets = options.buckets,
                                   .clip = options.clip,
                                   .overlap = options.overlap,
                                   .guard = options.guard,
                                   .probe_every = options.probe_every,
                                   .ratio = ratio};
  return std::make_unique<GradientAveraging>(site.communicator, site.compute, site.comm,
                                             site.parameters, std::move(methods),
                                             std::move(method_of), averaging, site.trace);
}

Methods choose_methods(Config& config, const TrainOptions& options,
                       std::span<const Segment> segments) {
  std::string method = "none";
  config.bind("compression.method", method, "compression method; `wisp methods` lists them");
  config.offer("compression.method", method_names());
  const Scope scope = bind_scope(config);
  const std::vector<PolicyRule> rules = read_policy(config);

  Methods chosen;
  chosen.recipe = make_recipe(config, method, options, scope, rules, segments);
  if (chosen.recipe) {
    chosen.names = method;
    for (Method& told : chosen.recipe->told) {
      if (told.name != "none") chosen.names += ", " + told.name;
      told.name = told.name == "none" ? method : method + " " + told.name;
    }
    chosen.methods = std::move(chosen.recipe->told);
    chosen.method_of = chosen.recipe->told_of;
    chosen.ratio = chosen.recipe->ratio;
    chosen.phases = chosen.recipe->phases;
    chosen.remarks = chosen.recipe->notes;
    WISP_CHECK(options.clip.where != ClipWhere::mean, config.where("clip.where"),
               ": clip.where is mean, but with method ", method,
               " no mean gradient exists: each worker clips its own");
    remark_on_one_worker(options, chosen);
    remark_on_clipping(config, options, chosen);
    return chosen;
  }
  const auto add = [&](const std::string& name, std::unique_ptr<Compressor> compressor) {
    if (!compressor) return kDense;
    check(config, name, compressor->traits(), scope, options);
    chosen.names += (chosen.names.empty() ? "" : ", ") + name;
    chosen.methods.push_back({name, std::move(compressor), scope});
    return static_cast<int>(chosen.methods.size()) - 1;
  };
  std::map<std::string, int> plain;  // methods without options from a rule, made once
  const auto add_plain = [&](const std::string& name) {
    const auto found = plain.find(name);
    if (found != plain.end()) return found->second;
    return plain[name] = add(name, make_compressor(config, name, options));
  };
  const int own = add_plain(method);
  std::vector<int> of_rule;
  for (const PolicyRule& rule : rules) {
    of_rule.push_back(rule.options.given_values().empty()
                          ? add_plain(rule.method)
                          : add(rule.method, make_compressor(config, rule, options)));
  }
  if (chosen.names.empty()) chosen.names = "none";
  remark_on_one_worker(options, chosen);
  const auto compressor_of = [&](int index) -> const Compressor& {
    return *chosen.methods[static_cast<size_t>(index)].compressor;
  };
  const bool dense_1d = own == kDense || compressor_of(own).traits().dense_1d;
  const std::vector<int> rule_of = choose_rules(segments, rules, dense_1d);
  for (const int rule : rule_of) {
    const int fallback = rule == kNoRule ? own : kDense;
    const int found = rule >= 0 ? of_rule[static_cast<size_t>(rule)] : fallback;
    const Segment& segment = segments[chosen.method_of.size()];
    const std::string refusal =
        found == kDense ? "" : compressor_of(found).refusal(field_of(segment));
    if (!refusal.empty()) chosen.remarks.push_back(segment.name + " stays dense: " + refusal);
    chosen.method_of.push_back(refusal.empty() ? found : kDense);
  }
  std::ranges::move(remarks_on_idle_rules(rules, rule_of), std::back_inserter(chosen.remarks));
  remark_on_clipping(config, options, chosen);
  if (std::ranges::any_of(chosen.methods,
                          [](const Method& m) { return m.compressor->traits().sparse; })) {
    const RatioSchedule schedule(config);
    chosen.ratio = [schedule](double epoch) { return schedule.at(epoch); };
    chosen.phases = schedule.phases();
  }
  return chosen;
}

}  // namespace wisp
