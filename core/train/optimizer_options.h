// Which optimizer, and how: the keys "optimizer.…".
#pragma once

#include <memory>
#include <string>

#include "core/train/adamw.h"
#include "core/train/sgd.h"

namespace wisp {

struct OptimizerOptions {
  std::string kind = "sgd";  // sgd | adamw
  double lr = 0.1;           // base rate; a schedule scales it
  SgdOptions sgd;
  AdamWOptions adamw;

  /// Binds all keys, of both kinds, and checks them.
  static OptimizerOptions bind(Config& config);

  bool is_adamw() const { return kind == "adamw"; }
  /// What the first moment keeps of its past: SGD's momentum, Adam's beta1.
  double momentum() const { return is_adamw() ? adamw.beta1 : sgd.momentum; }
  double weight_decay() const { return sgd.weight_decay; }  // one key for both
};

/// `parameters` outlives the optimizer.
std::unique_ptr<Optimizer> make_optimizer(FlatParameters& parameters,
                                          const OptimizerOptions& options);

}  // namespace wisp
