// Stochastic gradient descent over the flat arenas. One object per worker, used by its compute
// thread.
#pragma once

#include "core/io/config.h"
#include "core/train/optimizer.h"

namespace wisp {

struct SgdOptions {
  double momentum = 0.9;
  double dampening = 0.0;  // share of the gradient that does not enter the momentum
  bool nesterov = false;
  double weight_decay = 0.0;  // λ of segments with decay: adds λw to their gradient

  /// Binds the keys "optimizer.…" of SGD alone and checks them.
  static SgdOptions bind(Config& config);
};

class Sgd final : public Optimizer {
 public:
  /// Keeps its momentum, if it is not 0, in the arena "momentum". `parameters` outlives the
  /// optimizer. Throws Error for options out of range.
  Sgd(FlatParameters& parameters, SgdOptions options);

  /// For each segment, by its rule, with gradient g, weight w, momentum m:
  ///   gradient: d = g + λw; m = μm + (1 - τ)d; w -= lr · (nesterov ? d + μm : m)
  ///   momentum: m = g; w -= lr · (m + λw)
  ///   update:   w -= lr · g
  /// With dampening τ, update 1 sets m = d, undamped: as PyTorch, whose momentum does not exist
  /// before. Source: Sutskever et al. 2013 in the form of PyTorch's SGD (the learning rate outside
  /// the momentum).
  void step(const Context& context, double lr, int64_t number,
            std::span<const UpdateRule> rules) override;
  std::vector<std::string> arenas() const override;

 private:
  FlatParameters& parameters_;
  SgdOptions options_;
};

}  // namespace wisp
