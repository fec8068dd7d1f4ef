#include "core/train/optimizer_options.h"

#include "core/base/error.h"

namespace wisp {

OptimizerOptions OptimizerOptions::bind(Config& config) {
  OptimizerOptions options;
  config.bind("optimizer.kind", options.kind,
              "optimizer: sgd, or adamw (Adam with decoupled weight decay)");
  config.bind("optimizer.lr", options.lr, "base learning rate, for the whole batch, 0 or more");
  options.sgd = SgdOptions::bind(config);
  options.adamw = AdamWOptions::bind(config);
  double& decay = options.sgd.weight_decay;
  config.bind("optimizer.weight_decay", decay,
              "weight decay, without norms and biases, 0 or more; sgd: added to the gradient; "
              "adamw: decoupled, scaled by the learning rate");
  options.adamw.weight_decay = decay;
  WISP_CHECK(options.kind == "sgd" || options.kind == "adamw", config.where("optimizer.kind"),
             ": unknown optimizer.kind '", options.kind, "'; known: adamw, sgd");
  WISP_CHECK(options.lr >= 0.0, config.where("optimizer.lr"), ": optimizer.lr is ", options.lr,
             ", expected 0 or more");
  WISP_CHECK(decay >= 0.0, config.where("optimizer.weight_decay"), ": optimizer.weight_decay is ",
             decay, ", expected 0 or more");
  return options;
}

std::unique_ptr<Optimizer> make_optimizer(FlatParameters& parameters,
                                          const OptimizerOptions& options) {
  if (options.is_adamw()) return std::make_unique<AdamW>(parameters, options.adamw);
  return std::make_unique<Sgd>(parameters, options.sgd);
}

}  // namespace wisp
