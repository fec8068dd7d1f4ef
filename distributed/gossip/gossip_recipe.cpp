// The gossip methods by name: binds their keys, makes graph and codes, writes notes for the user.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compression/ratio_schedule.h"
#include "distributed/gossip/gossip.h"

namespace wisp {
namespace {

/// The codes of a run, and the segments that use them.
struct Codes {
  std::vector<std::string> names, places;  // a place names its code: "FILE:LINE: gossip.code"
  std::vector<std::shared_ptr<const Code>> codes;
  std::vector<std::optional<double>> shares;  // the least share that each code keeps of a field
  std::vector<int> code_of;                   // indexed by segment
  std::vector<std::string> remarks;

  bool exact() const { return names == std::vector<std::string>{"none"}; }
  bool any(bool Traits::*trait) const {
    return std::any_of(codes.begin(), codes.end(),
                       [trait](const auto& code) { return code->traits().*trait; });
  }
  /// The least share of the codes that leave elements out; empty, which compares as less than any
  /// share, if a code does not know its own.
  std::optional<double> least_share() const {
    std::optional<double> least = 1.0;
    for (size_t i = 0; i < codes.size(); ++i)
      if (codes[i]->traits().sparse) least = std::min(least, shares[i]);
    return least;
  }
};

/// `who` names the code in messages.
std::unique_ptr<Code> make_code(Config& config, const std::string& who, const std::string& name,
                                const SynchronizerSetup& setup) {
  const auto& entries = CodeRegistry::instance().entries();
  if (entries.count(name) == 0) {
    throw Error(concat(who, " names '", name,
                       "', which is no code: neighbours could not decode its messages one by one; "
                       "codes: ",
                       fmt::format("{}", fmt::join(CodeRegistry::instance().names(), ", "))));
  }
  std::unique_ptr<Code> code = entries.at(name).make(config, setup.codes);
  const std::vector<Scope>& scopes = code->traits().scopes;
  WISP_CHECK(std::count(scopes.begin(), scopes.end(), setup.scope) > 0,
             config.where("compression.scope"), ": code ", name,
             " does not work at this compression.scope");
  return code;
}

std::vector<std::optional<double>> shares_of(const Codes& codes, const SynchronizerSetup& setup) {
  std::vector<std::optional<double>> shares(codes.codes.size(), 1.0);
  if (setup.segments.empty()) return shares;
  const std::vector<CutMethod> methods(shares.size(), {.scope = setup.scope});
  const Cut cut = make_cut(setup.segments, size_of(DType::f32), codes.code_of, methods,
                           setup.buckets, setup.device);
  for (const CutUnit& unit : cut.units) {
    const auto code = static_cast<size_t>(unit.method);
    for (const Field& field : unit.fields)
      shares[code] = std::min(shares[code], codes.codes[code]->least_share(field));
  }
  return shares;
}

Codes choose_codes(Config& config, const SynchronizerSetup& setup) {
  std::string name = "none";
  config.bind("gossip.code", name,
              "compression of the messages: a method that is a code; none: exact 32-bit numbers");
  config.offer("gossip.code", CodeRegistry::instance().names());
  for (const PolicyRule& rule : setup.rules) {
    WISP_CHECK(rule.options.given_values().empty(), rule.where,
               ": in gossip a rule has no options of its own; set them for the whole run");
  }
  Codes chosen;
  std::map<std::string, int> index;
  const auto add = [&](const std::string& where, const std::string& code) {
    const auto [found, added] = index.try_emplace(code, static_cast<int>(chosen.codes.size()));
    if (!added) return found->second;
    chosen.codes.push_back(make_code(config, where, code, setup));
    chosen.names.push_back(code);
    chosen.places.push_back(where);
    return found->second;
  };
  const std::vector<int> rule_of = choose_rules(setup.segments, setup.rules, false);
  if (rule_of.empty() || std::count(rule_of.begin(), rule_of.end(), kNoRule) > 0)
    add(config.where("gossip.code") + ": gossip.code", name);
  for (const int of_segment : rule_of) {
    if (of_segment == kNoRule) {
      chosen.code_of.push_back(index.at(name));
      continue;
    }
    const PolicyRule& rule = setup.rules[static_cast<size_t>(of_segment)];
    chosen.code_of.push_back(add(rule.where + ": a rule of compression.policy", rule.method));
  }
  chosen.remarks = remarks_on_idle_rules(setup.rules, rule_of);
  chosen.shares = shares_of(chosen, setup);
  return chosen;
}

/// The preference of a method for a code with a choice: an unbiased result, or a small error.
enum class Wants { mean, contraction };

/// Makes a method for codes of which the strongest keeps `share`, if known. `drawn`: the code keeps
/// drawn elements.
using MakeMethod =
    std::function<std::unique_ptr<GossipMethod>(std::optional<double> share, bool drawn)>;

std::unique_ptr<SynchronizerRecipe> make_recipe(Config& config, const std::string& name,
                                                SynchronizerSetup setup, Wants wants,
                                                const MakeMethod& make_method) {
  const std::string idle = set_keys(config, {"compression.probe_every"});
  WISP_CHECK(idle.empty(), idle, " means nothing to ", name,
             ", which averages no gradients; "
             "train.distance_every measures how far the workers are apart");
  std::string graph = "ring";
  config.bind("gossip.graph", graph,
              "graph of neighbours: ring, torus, complete, edges such as \"0-1, 1-2, 2-0\", or a "
              "file of edges");
  const auto mixing = std::make_shared<const Mixing>(graph, setup.workers);
  setup.codes.alone = true;
  setup.codes.feedback = wants == Wants::contraction;
  Codes codes = choose_codes(config, setup);

  auto recipe = std::make_unique<SynchronizerRecipe>();
  recipe->notes.push_back("gossip on a " + mixing->describe());
  std::move(codes.remarks.begin(), codes.remarks.end(), std::back_inserter(recipe->notes));
  std::optional<double> delta, share;
  if (codes.exact()) delta = share = 1.0;
  if (codes.any(&Traits::sparse)) {
    const RatioSchedule schedule(config);
    delta = codes.least_share();
    share = delta.value_or(schedule.final_ratio());  // the most that it keeps
    recipe->ratio = [schedule](double epoch) { return schedule.at(epoch); };
    recipe->phases = schedule.phases();
  }
  const std::shared_ptr<GossipMethod> method = make_method(share, codes.any(&Traits::drawn));
  for (size_t i = 0; i < codes.codes.size(); ++i) {
    const std::string refusal =
        method->refusal(*mixing, *codes.codes[i], codes.shares[i].value_or(1.0));
    WISP_CHECK(refusal.empty(), codes.places[i], " is ", codes.names[i], ": ", refusal);
    recipe->told.push_back({codes.names[i],
                            std::make_unique<ToldUnit>(method, mixing, codes.codes[i], false),
                            setup.scope});
  }
  recipe->told_of = codes.code_of;
  recipe->neighbourhood = {mixing->degree(), mixing->spectral_gap()};
  if (!codes.exact()) recipe->notes.push_back(method->asks(*mixing, delta));
  const GossipOptions options{setup.buckets, setup.scope, setup.guard, recipe->ratio};
  recipe->make = [codes = std::move(codes), mixing, options, method,
                  step = setup.step](const SynchronizerSite& site) {
    return std::make_unique<OwnWeights>(
        site, step,
        std::make_unique<Gossip>(site, method, mixing, codes.codes, codes.code_of, options));
  };
  return recipe;
}

std::unique_ptr<SynchronizerRecipe> make_choco_recipe(Config& config,
                                                      const SynchronizerSetup& setup) {
  double step = 0.0;
  config.bind(
      "gossip.consensus_step", step,
      "gamma of choco, the length of a step towards the neighbours, in [0, 1]; 0: automatic, 1 for "
      "an exact code, 3 times the kept share up to 0.5 for a selection of the largest, half the "
      "kept share for a drawn selection, else 0.5");
  config.expect(step >= 0.0 && step <= 1.0, "gossip.consensus_step", step, "0 to 1");
  return make_recipe(config, "choco", setup, Wants::contraction,
                     [step](std::optional<double> share, bool drawn) {
                       return make_choco(step > 0.0 ? step : choco_usual_step(share, drawn));
                     });
}

SynchronizerRegistry::Factory recipe_of(const std::string& name, Wants wants,
                                        std::unique_ptr<GossipMethod> (*make)()) {
  return [=](Config& config, const SynchronizerSetup& setup) {
    return make_recipe(config, name, setup, wants,
                       [make](std::optional<double>, bool) { return make(); });
  };
}

const SynchronizerRegistration dpsgd(
    "dpsgd", "gossip: weights of the neighbours in a graph (Lian et al. 2017)",
    recipe_of("dpsgd", Wants::contraction, make_dpsgd));
const SynchronizerRegistration dcd("dcd",
                                   "gossip: compressed changes of the weights (Tang et al. 2018)",
                                   recipe_of("dcd", Wants::mean, make_dcd));
const SynchronizerRegistration ecd(
    "ecd", "gossip: compressed extrapolations of the weights (Tang et al. 2018)",
    recipe_of("ecd", Wants::mean, make_ecd));
const SynchronizerRegistration choco(
    "choco",
    "gossip: compressed differences to the neighbours' copies, any code (Koloskova et al. 2020)",
    make_choco_recipe);

}  // namespace
}  // namespace wisp
