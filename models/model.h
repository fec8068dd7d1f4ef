// A trainable model: from a batch to a loss and its metrics.
#pragma once

#include "core/batch.h"
#include "layers/module.h"

namespace wisp {

struct Step {
  Variable loss;    // one element, mean over the batch
  Variable logits;  // (N, classes)
};

class Model : public Module {
 public:
  virtual Step forward(Context& context, const Batch& batch) = 0;
};

}  // namespace wisp
