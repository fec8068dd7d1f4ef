// The sum of squared micro-batch gradients, for methods that need it: square = sum over j of
// delta_j^2, where delta_j is the part of the gradient arena that micro-batch j added. With one
// micro-batch it is the square of the gradient. The compute thread adds all micro-batches but the
// last, which the comm thread adds.
#pragma once

#include <span>

#include "core/context.h"
#include "core/parameter.h"

namespace wisp {

class GradientSquares {
 public:
  /// If not `wanted`, the object has no memory and does nothing.
  GradientSquares(Context& compute, FlatParameters& parameters, bool wanted);

  /// Begins a step.
  void begin() { micro_batches_ = 0; }
  /// Adds a micro-batch that is not the last of its step and is already in the gradient arena,
  /// which does not change. delta_j is the difference to its previous contents, rounded once.
  void add_micro_batch();
  /// Adds the last micro-batch for these segments, whose gradients are complete.
  void finish(const Stream& stream, std::span<const int> segments) const;
  /// The arena of squares; undefined if not wanted.
  const Tensor& arena() const { return square_; }

 private:
  Context& compute_;
  FlatParameters& parameters_;
  Tensor square_;  // arena of squares; undefined if not wanted
  Tensor before_;  // the gradient arena after the previous micro-batch; made at first use
  int micro_batches_ = 0;
};

}  // namespace wisp
