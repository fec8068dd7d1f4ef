// Dropout with a number of its own, so that two layers of a model choose different elements.
#pragma once

#include "core/ops.h"

namespace wisp {

class Dropout final {
 public:
  /// `layer` differs between the dropout layers of a model.
  Dropout(double probability, uint64_t layer) : probability_(probability), layer_(layer) {}

  /// The identity if the context does not train.
  Variable operator()(const Variable& x) const { return dropout(x, probability_, layer_); }

 private:
  double probability_;
  uint64_t layer_;
};

}  // namespace wisp
