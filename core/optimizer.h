// Stochastic gradient descent over the flat arenas. One object per worker, used by its compute
// thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/parameter.h"
#include "core/update_rule.h"

namespace wisp {

struct SgdOptions {
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0.0;  // λ of segments with decay: adds λw to their gradient
};

class Sgd {
 public:
  /// Keeps its momentum in the arena "momentum". `parameters` outlives the optimizer. Throws Error
  /// for options out of range.
  Sgd(FlatParameters& parameters, SgdOptions options);

  /// For each segment, by its rule, with gradient g, weight w, momentum m:
  ///   gradient: d = g + λw; m = μm + d; w -= lr · (nesterov ? d + μm : m)
  ///   momentum: m = g; w -= lr · (m + λw)
  ///   update:   w -= lr · g
  /// Source: Sutskever et al. 2013 in the form of PyTorch's SGD (the learning rate outside the
  /// momentum).
  void step(const Context& context, double lr, std::span<const UpdateRule> rules);

  /// The arenas that it keeps state in.
  std::vector<std::string> arenas() const { return {"momentum"}; }
  const SgdOptions& options() const { return options_; }

 private:
  FlatParameters& parameters_;
  SgdOptions options_;
};

}  // namespace wisp
