// Optimizers by name. A configuration becomes a recipe before anything has memory, and the recipe
// makes each worker's optimizer. Used by the thread that sets up a run.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/registry.h"
#include "core/io/config.h"
#include "core/train/optimizer.h"

namespace wisp {

/// An optimizer of a run, and what compression methods need to know of it.
struct OptimizerRecipe {
  /// Makes a worker's optimizer, which the parameters outlive.
  std::function<std::unique_ptr<Optimizer>(FlatParameters&)> make;
  int arenas = 0;  // number of arenas that hold its state
  /// What a method may leave for it. A method that leaves anything else is refused.
  std::vector<UpdateRule> rules = {UpdateRule::gradient};
  bool accepts(UpdateRule rule) const { return std::ranges::count(rules, rule) > 0; }

  /// The mean of gradients in the arena "momentum", which a method may take over.
  struct Momentum {
    std::string key;         // its key in messages
    double rate = 0.0;       // decay rate; 0: there is no such mean
    bool nesterov = false;   // as in Sgd
    double dampening = 0.0;  // as in Sgd
  };
  Momentum momentum;
  std::optional<double> beta2;  // decay rate of the second moment, if it is Adam's
};

/// The factory binds and checks the keys "optimizer.…" of its optimizer. `weight_decay`, 0 or more,
/// is bound for all optimizers.
using OptimizerRegistry = Registry<OptimizerRecipe, Config&, double>;
using OptimizerRegistration = Registration<OptimizerRecipe, Config&, double>;

}  // namespace wisp
