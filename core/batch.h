// What a loader hands to a model.
#pragma once

#include "core/tensor.h"

namespace wisp {

struct Batch {
  Tensor input;       // images: (N, H, W, C) in the compute dtype, normalised
  Tensor labels;      // (N) i32
  Tensor samples;     // (N) i64: global sample ids, the keys of augmentation and dropout
  int64_t index = 0;  // number of the batch in its epoch

  int64_t size() const { return labels.defined() ? labels.numel() : 0; }
};

}  // namespace wisp
