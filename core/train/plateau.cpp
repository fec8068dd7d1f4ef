#include "core/train/plateau.h"

#include <algorithm>
#include <limits>

namespace wisp {

Plateau::Plateau(const LrSchedule& schedule) : schedule_(schedule) {
  words()[kFactor] = 1.0;
  words()[kBest] = std::numeric_limits<double>::infinity();
}

void Plateau::observe(double loss) {
  if (schedule_.kind != "plateau") return;
  double* state = words();
  if (loss < state[kBest] * (1.0 - schedule_.threshold)) {
    state[kBest] = loss;
    state[kBad] = 0.0;
    return;
  }
  if (++state[kBad] <= static_cast<double>(schedule_.patience)) return;
  state[kFactor] = std::max(schedule_.min_factor, state[kFactor] * schedule_.factor);
  state[kBad] = 0.0;
}

}  // namespace wisp
