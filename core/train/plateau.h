// A learning-rate factor that falls when the loss stops falling. All ranks have the same state if
// they observe the same losses. One thread at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/tensor/tensor.h"
#include "core/train/schedule.h"

namespace wisp {

class Plateau {
 public:
  /// The factor stays 1 without options.
  explicit Plateau(const std::optional<PlateauOptions>& options) : options_(options) {
    words()[kFactor] = 1.0;
    words()[kBest] = std::numeric_limits<double>::infinity();
  }

  /// Takes an evaluation's loss. A loss is better if it is below best · (1 - threshold); NaN never
  /// is. After more than `patience` losses in a row that are not better, the factor is multiplied
  /// by options.factor, but does not fall below options.min_factor, and the count restarts. Like
  /// PyTorch's ReduceLROnPlateau without cooldown.
  void observe(double loss) {
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

  /// A factor of the learning rate, beside LrSchedule::at().
  double factor() const { return words()[kFactor]; }

  /// All state, (3) f64. A checkpoint restores it by writing into it.
  const Tensor& state() const { return state_; }
  /// Throws Error unless a state from a file, on the host, is one that losses can lead to.
  static void check(const Tensor& state) {
    const double* words = state.data<double>();
    WISP_CHECK(words[kFactor] >= 0.0 && words[kFactor] <= 1.0, "the factor is ", words[kFactor],
               ", expected 0 to 1");
    WISP_CHECK(!std::isnan(words[kBest]), "the best loss is ", words[kBest]);
    WISP_CHECK(words[kBad] >= 0.0 && words[kBad] <= 0x1p53, "the number of losses is ", words[kBad],
               ", expected 0 or more");
  }

 private:
  enum Word { kFactor, kBest, kBad };
  double* words() const { return state_.data<double>(); }

  std::optional<PlateauOptions> options_;
  Tensor state_{{3}, DType::f64};
};

}  // namespace wisp
