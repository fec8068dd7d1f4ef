// Adam with decoupled weight decay (AdamW) on the flat arenas. A worker has one object, for its
// compute thread.
#pragma once

#include "core/train/optimizer_recipe.h"

namespace wisp {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;  // λ of segments with decay: an update subtracts lr · λw

  /// Binds and checks the keys "optimizer.…" that only AdamW has.
  static AdamWOptions bind(Config& config);
};

class AdamW final : public Optimizer {
 public:
  /// Keeps the moments in the arenas "momentum", where compressors find it, and "second_moment".
  /// `parameters` must outlive the optimizer. Throws Error for options out of range.
  AdamW(FlatParameters& parameters, AdamWOptions options);

  /// Updates each segment by its rule. g is the gradient, w the weight, m and v the moments, t =
  /// `number`, and s the number of updates of v, or t if there were none.
  ///   gradient: m = β1 m + (1 - β1) g; v = β2 v + (1 - β2) g²;
  ///             w = w - lr λ w - lr · m / (1 - β1ᵗ) / (√(v / (1 - β2ˢ)) + ε)
  ///   momentum: the same w with m = g; v and s do not change. If v stopped after fewer than about
  ///             1 / (1 - β2) updates, it is the mean of only as many gradients.
  ///   update:   w -= lr · g
  /// Source: Loshchilov & Hutter 2019, algorithm 2; here the learning rate also scales the decay,
  /// as in PyTorch's AdamW. Momentum: Tang et al. 2021, "1-bit Adam", algorithm 1, which has no
  /// corrections.
  void step(const Context& context, double lr, int64_t number,
            std::span<const UpdateRule> rules) override;
  std::vector<std::string> arenas() const override;
  std::vector<SavedState> counters() const override;

 private:
  FlatParameters& parameters_;
  AdamWOptions options_;
  Tensor second_number_;  // (segments) i64: number of updates of v
};

OptimizerRecipe recipe_of(const AdamWOptions& options);

}  // namespace wisp
