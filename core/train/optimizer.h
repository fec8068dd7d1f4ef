// What turns gradients into new weights. One object per worker, used by its compute thread.
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
  /// Moves the weights of each of segments() by its rule. `number` counts the updates of the run
  /// from 1; a skipped step is none. Throws Error unless there is a rule for each segment.
  virtual void step(const Context& context, double lr, int64_t number,
                    std::span<const UpdateRule> rules) = 0;
  /// The arenas that it keeps state in.
  virtual std::vector<std::string> arenas() const = 0;
  /// What else a checkpoint has to hold, the same on all ranks.
  virtual std::vector<SavedState> counters() const { return {}; }
};

}  // namespace wisp
