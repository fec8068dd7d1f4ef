// A layer of your own: PReLU, a ReLU whose negative side has a learned slope. Belongs to its
// model's thread. Source: He et al. 2015, "Delving deep into rectifiers", section 2.1, the
// channel-shared form.
#pragma once

#include "layers/module.h"

namespace wisp::examples {

/// max(x, 0) + slope · min(x, 0) of each element; slope has shape (1).
Variable prelu(const Variable& x, const Variable& slope);

class PRelu final : public Module {
 public:
  /// The slope starts at 1/4 and has no weight decay, as in the paper.
  PRelu();
  Variable operator()(const Variable& x) const { return prelu(x, slope_.variable); }

 private:
  Parameter& slope_;
};

}  // namespace wisp::examples
