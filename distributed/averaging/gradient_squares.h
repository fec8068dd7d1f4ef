// The sum of squared micro-batch gradients, for methods that want it: square = sum over j of
// delta_j^2, delta_j what micro-batch j added to the gradient arena; with one micro-batch the
// gradient's square. All but the last are added by the compute thread, the last by the comm thread.
#pragma once

#include <span>

#include "core/context.h"
#include "core/parameter.h"

namespace wisp {

class GradientSquares {
 public:
  /// Not `wanted`: no memory, and nothing happens.
  GradientSquares(Context& compute, FlatParameters& parameters, bool wanted);

  /// A step begins.
  void begin() { micro_batches_ = 0; }
  /// A micro-batch that is not the step's last has been added to the gradient arena, which is not
  /// changed. delta_j is its difference from what lay there before, rounded once.
  void add_micro_batch();
  /// Adds the last micro-batch's share of the segments, whose gradients are complete.
  void finish(const Stream& stream, std::span<const int> segments) const;
  /// Undefined if nobody wants it.
  const Tensor& arena() const { return square_; }

 private:
  Context& compute_;
  FlatParameters& parameters_;
  Tensor square_;  // arena; undefined if nobody wants it
  Tensor before_;  // the gradient arena after the micro-batch before; from the first that needs it
  int micro_batches_ = 0;
};

}  // namespace wisp
