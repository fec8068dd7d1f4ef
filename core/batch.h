// What a loader hands to a model: a piece of a step. A value; its tensors are shared.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace wisp {

struct Batch;
struct Context;

/// Data that a device holds.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// Makes the inputs and targets of `batch`, whose samples are on the context's device, in the
  /// order of its stream.
  virtual void make(const Context& context, Batch& batch) const = 0;
};

struct Batch {
  std::vector<Tensor> inputs;  // images: one, (N, H, W, C) in the compute dtype, normalised
  Tensor targets;              // i32; -1: there is none, as of a sample that was damaged;
                               // undefined for a model that is only asked
  Tensor lengths;              // (N) i64, where rows are padded: how much of each is data
  Tensor samples;              // i64, by row: keys of augmentation and dropout

  int64_t count = 0;      // targets, with those that are -1: what the loss is divided by
  int64_t ignored = 0;    // of these, those that are -1
  int64_t of_worker = 0;  // the same of all its worker's pieces of the step
  int64_t of_step = 0;    // and of all workers'
  int64_t work = 0;       // what speed is measured in: images, tokens, frames
  int64_t index = 0;      // number of the batch in its epoch
  bool begins = false;    // carried state starts at zero

  const BatchMaker* maker = nullptr;  // there are samples alone: it makes inputs and targets
  uint64_t seed = 0;                  // with epoch and sample, the key of augmentation
  int64_t epoch = 0;
};

}  // namespace wisp
