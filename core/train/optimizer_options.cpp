#include "core/train/optimizer_options.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/io/input_file.h"
#include "core/train/adamw.h"
#include "core/train/sgd.h"

namespace wisp {
namespace {

std::unique_ptr<OptimizerRecipe> make_sgd(Config& config, double weight_decay) {
  SgdOptions options = SgdOptions::bind(config);
  options.weight_decay = weight_decay;
  auto recipe = std::make_unique<OptimizerRecipe>();
  recipe->make = [options](FlatParameters& parameters) {
    return std::make_unique<Sgd>(parameters, options);
  };
  recipe->arenas = options.momentum > 0.0 ? 1 : 0;
  recipe->rules = {UpdateRule::gradient, UpdateRule::update};
  recipe->momentum = {"optimizer.momentum", options.momentum, options.nesterov, options.dampening};
  return recipe;
}

std::unique_ptr<OptimizerRecipe> make_adamw(Config& config, double weight_decay) {
  AdamWOptions options = AdamWOptions::bind(config);
  options.weight_decay = weight_decay;
  auto recipe = std::make_unique<OptimizerRecipe>();
  recipe->make = [options](FlatParameters& parameters) {
    return std::make_unique<AdamW>(parameters, options);
  };
  recipe->arenas = 2;
  recipe->rules = {UpdateRule::gradient, UpdateRule::momentum};
  recipe->momentum = {.key = "optimizer.beta1", .rate = options.beta1};
  recipe->beta2 = options.beta2;
  return recipe;
}

// Here, because a program links this file whenever it chooses an optimizer.
const OptimizerRegistration sgd(
    "sgd", "stochastic gradient descent with momentum; weight decay is added to the gradient",
    make_sgd);
const OptimizerRegistration adamw("adamw",
                                  "Adam with weight decay that is decoupled and scaled by the "
                                  "learning rate (Loshchilov & Hutter 2019)",
                                  make_adamw);

/// Forgets given keys that only other optimizers have. Returns a notice if there are such keys.
std::vector<std::string> forget_idle_keys(Config& config, const std::string& kind) {
  std::string idle;
  for (const auto& [name, entry] : OptimizerRegistry::instance().entries()) {
    Config defaults;
    entry.make(defaults, 0.0);
    for (const ConfigKey& key : defaults.keys()) {
      const bool bound = std::ranges::any_of(
          config.keys(), [&](const ConfigKey& own) { return own.name == key.name; });
      if (bound || !config.given(key.name)) continue;
      idle += concat(idle.empty() ? "" : ", ", key.name, " (", config.where(key.name), ")");
      config.forget(key.name);
    }
  }
  if (idle.empty()) return {};
  return {concat("keys of other optimizers have no effect with optimizer.kind ", kind, ": ", idle)};
}

}  // namespace

OptimizerOptions OptimizerOptions::bind(Config& config) {
  OptimizerOptions options;
  config.bind("optimizer.kind", options.kind,
              "optimizer; `wisp config --reference` has a section for each");
  config.bind("optimizer.lr", options.lr, "base learning rate, for the whole batch, 0 or more");
  config.bind("optimizer.weight_decay", options.weight_decay,
              "weight decay, without norms and biases, 0 or more");
  const auto expect = [&](bool holds, const char* key, double value) {
    WISP_CHECK(holds, config.where(key), ": ", key, " is ", value, ", expected 0 or more");
  };
  expect(options.lr >= 0.0, "optimizer.lr", options.lr);
  expect(options.weight_decay >= 0.0, "optimizer.weight_decay", options.weight_decay);
  const OptimizerRegistry::Entry& entry =
      naming(config.where("optimizer.kind"), [&]() -> const OptimizerRegistry::Entry& {
        return OptimizerRegistry::instance().find("optimizer.kind", options.kind);
      });
  options.recipe = *entry.make(config, options.weight_decay);
  options.notices = forget_idle_keys(config, options.kind);
  return options;
}

bool OptimizerOptions::accepts(UpdateRule rule) const {
  return std::ranges::count(recipe.rules, rule) > 0;
}

}  // namespace wisp
