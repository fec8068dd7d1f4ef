#include "core/train/plateau.h"

#include <algorithm>
#include <limits>

namespace wisp {

Plateau::Plateau(const std::optional<PlateauOptions>& options) : options_(options) {
  words()[kFactor] = 1.0;
  words()[kBest] = std::numeric_limits<double>::infinity();
}

void Plateau::observe(double loss) {
  if (!options_) return;
  double* state = words();
  if (loss < state[kBest] * (1.0 - options_->threshold)) {
    state[kBest] = loss;
    state[kBad] = 0.0;
    return;
  }
  if (++state[kBad] <= static_cast<double>(options_->patience)) return;
  state[kFactor] = std::max(options_->min_factor, state[kFactor] * options_->factor);
  state[kBad] = 0.0;
}

}  // namespace wisp
