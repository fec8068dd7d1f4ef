// Stochastic gradient descent on the flat arenas. A worker has one object, for its compute thread.
#pragma once

#include "core/train/optimizer_recipe.h"

namespace wisp {

struct SgdOptions {
  double momentum = 0.9;
  double dampening = 0.0;  // share of the gradient left out of the momentum
  bool nesterov = false;
  double weight_decay = 0.0;  // λ of segments with decay: λw is added to their gradient

  /// Binds and checks the keys "optimizer.…" that only SGD has.
  static SgdOptions bind(Config& config);
};

class Sgd final : public Optimizer {
 public:
  /// Keeps a momentum other than 0 in the arena "momentum". `parameters` must outlive the
  /// optimizer. Throws Error for options out of range.
  Sgd(FlatParameters& parameters, SgdOptions options);

  /// Updates each segment by its rule. g is the gradient, w the weight, m the momentum.
  ///   gradient: d = g + λw; m = μm + (1 - τ)d; w -= lr · (nesterov ? d + μm : m)
  ///   momentum: m = g; w -= lr · (m + λw)
  ///   update:   w -= lr · g
  /// With dampening τ, update 1 sets m = d without damping, like PyTorch, which then creates its
  /// momentum. Source: Sutskever et al. 2013 in the form of PyTorch's SGD, with the learning rate
  /// outside the momentum.
  void step(const Context& context, double lr, int64_t number,
            std::span<const UpdateRule> rules) override;
  std::vector<std::string> arenas() const override;

 private:
  FlatParameters& parameters_;
  SgdOptions options_;
};

OptimizerRecipe recipe_of(const SgdOptions& options);

}  // namespace wisp
