// The choice of an optimizer and its options: the keys "optimizer.…". Plain values.
#pragma once

#include <memory>
#include <string>

#include "core/train/adamw.h"
#include "core/train/sgd.h"

namespace wisp {

struct OptimizerOptions {
  std::string kind = "sgd";  // sgd | adamw
  double lr = 0.1;           // base learning rate; a schedule scales it
  SgdOptions sgd;
  AdamWOptions adamw;

  /// Binds and checks the keys of both kinds.
  static OptimizerOptions bind(Config& config);

  bool is_adamw() const { return kind == "adamw"; }
  /// Decay rate of the first moment: SGD's momentum, Adam's beta1.
  double momentum() const { return is_adamw() ? adamw.beta1 : sgd.momentum; }
  double weight_decay() const { return sgd.weight_decay; }  // one key for both kinds
};

/// `parameters` must outlive the optimizer.
std::unique_ptr<Optimizer> make_optimizer(FlatParameters& parameters,
                                          const OptimizerOptions& options);

}  // namespace wisp
