// The learning rate falls when the loss stops falling. State that is the same on all ranks, if they
// observe the same losses.
#pragma once

#include "core/tensor/tensor.h"
#include "core/train/schedule.h"

namespace wisp {

class Plateau {
 public:
  /// Any other kind of schedule never moves.
  explicit Plateau(const LrSchedule& schedule);

  /// An evaluation's loss. It is better if below best · (1 - threshold); after more than `patience`
  /// in a row that are not (a NaN is not) the factor is multiplied by schedule.factor and the count
  /// begins anew. As PyTorch's ReduceLROnPlateau, without cooldown.
  void observe(double loss);

  /// What the learning rate is multiplied by, beside LrSchedule::at().
  double factor() const { return words()[kFactor]; }

  /// (3) f64: all there is to save; restored by writing into it.
  const Tensor& state() const { return state_; }

 private:
  enum Word { kFactor, kBest, kBad };
  double* words() const { return state_.data<double>(); }

  LrSchedule schedule_;
  Tensor state_{{3}, DType::f64};
};

}  // namespace wisp
