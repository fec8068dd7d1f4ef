// The choice of an optimizer: the keys "optimizer.…". A value; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/train/optimizer_recipe.h"

namespace wisp {

struct OptimizerOptions {
  std::string kind = "sgd";
  double lr = 0.1;  // base learning rate; a schedule scales it
  double weight_decay = 0.0;
  OptimizerRecipe recipe;            // cannot make anything before bind()
  std::vector<std::string> notices;  // for the user, a line each

  /// Binds and checks the keys that all optimizers share, and those of the chosen one. Keys of
  /// other optimizers are forgotten with a notice, because `extends` and earlier versions leave
  /// them.
  static OptimizerOptions bind(Config& config);
};

}  // namespace wisp
