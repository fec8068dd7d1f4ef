// The interface of optimizers, which turn gradients into new weights. A worker has one object, for
// its compute thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/io/saved_state.h"
#include "core/parameter.h"
#include "core/train/update_rule.h"

namespace wisp {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Updates the weights of each of segments() by its rule. `number` counts the run's updates from
  /// 1; a skipped step does not count. Throws Error unless there is one rule per segment.
  virtual void step(const Context& context, double lr, int64_t number,
                    std::span<const UpdateRule> rules) = 0;
  /// Names of the arenas with the optimizer's state.
  virtual std::vector<std::string> arenas() const = 0;
  /// Further state for checkpoints, the same on all ranks.
  virtual std::vector<SavedState> counters() const { return {}; }
};

}  // namespace wisp
