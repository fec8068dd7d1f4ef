// Dropout with a layer number, so that two layers of a model drop different elements. Used by the
// thread of its context.
#pragma once

#include "core/ops.h"

namespace wisp {

class Dropout final {
 public:
  /// `layer` is a number that no other dropout layer of the model has.
  Dropout(double probability, uint64_t layer) : probability_(probability), layer_(layer) {}

  /// Returns x unchanged if the context does not train.
  Variable operator()(const Variable& x) const { return dropout(x, probability_, layer_); }

 private:
  double probability_;
  uint64_t layer_;
};

}  // namespace wisp
