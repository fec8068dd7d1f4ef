// Dropout with a layer number, so that two layers of a model drop different elements. Used by the
// thread of its context.
#pragma once

#include "core/ops.h"

namespace wisp {

struct Dropout {
  double probability;
  uint64_t layer;  // a number that no other dropout layer of the model has

  /// Returns x unchanged if the context does not train.
  Variable operator()(const Variable& x) const { return dropout(x, probability, layer); }
};

}  // namespace wisp
