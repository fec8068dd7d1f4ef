#include "core/train/optimizer_options.h"

#include "core/io/input_file.h"
#include "core/train/adamw.h"
#include "core/train/idle_keys.h"
#include "core/train/sgd.h"

namespace wisp {
namespace {

template <class Options>
std::unique_ptr<OptimizerRecipe> make(Config& config, double weight_decay) {
  Options options = Options::bind(config);
  options.weight_decay = weight_decay;
  return std::make_unique<OptimizerRecipe>(recipe_of(options));
}

// Here, because a program links this file whenever it chooses an optimizer.
const OptimizerRegistration sgd(
    "sgd", "stochastic gradient descent with momentum; weight decay is added to the gradient",
    make<SgdOptions>);
const OptimizerRegistration adamw("adamw",
                                  "Adam with weight decay that is decoupled and scaled by the "
                                  "learning rate (Loshchilov & Hutter 2019)",
                                  make<AdamWOptions>);

}  // namespace

OptimizerOptions OptimizerOptions::bind(Config& config) {
  OptimizerOptions options;
  config.bind("optimizer.kind", options.kind,
              "optimizer; `wisp config --reference` has a section for each");
  config.offer("optimizer.kind", OptimizerRegistry::instance().names());
  config.bind_least("optimizer.lr", options.lr, 0.0,
                    "base learning rate, for the whole batch, 0 or more");
  config.bind_least("optimizer.weight_decay", options.weight_decay, 0.0,
                    "weight decay, without norms and biases, 0 or more");
  const OptimizerRegistry::Entry& entry =
      naming(config.where("optimizer.kind"), [&]() -> const OptimizerRegistry::Entry& {
        return OptimizerRegistry::instance().find("optimizer.kind", options.kind);
      });
  options.recipe = *entry.make(config, options.weight_decay);
  options.notices =
      forget_idle_keys(config, "optimizer", options.kind, keys_of_all<OptimizerRegistry>(0.0));
  return options;
}

}  // namespace wisp
