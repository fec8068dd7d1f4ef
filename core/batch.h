// A batch: the piece of a step that a loader hands to a model. A value type whose tensors are
// shared.
#pragma once

#include <vector>

#include "core/tensor/tensor.h"

namespace wisp {

struct Batch;
struct Context;

/// Makes batches from data that a device holds.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;
  /// Makes the inputs and targets of `batch`, in the order of the context's stream. The batch's
  /// samples are on the context's device.
  virtual void make(const Context& context, Batch& batch) const = 0;
};

struct Batch {
  std::vector<Tensor> inputs;  // images: one tensor (N, H, W, C) in the compute dtype, normalised
  Tensor targets;              // i32; -1: no target, e.g. a damaged sample; undefined in inference
  Tensor lengths;              // (N) i64, the valid length of each padded row
  Tensor samples;              // i64, one per row: keys of augmentation and dropout

  int64_t count = 0;      // number of targets, ignored ones too: divisor of the loss
  int64_t ignored = 0;    // number of targets that are -1
  int64_t of_worker = 0;  // targets in all batches of this worker in the step
  int64_t of_step = 0;    // targets in all batches of all workers in the step
  int64_t work = 0;       // number of images, tokens or frames
  int64_t index = 0;      // number of the batch in its epoch
  bool begins = false;    // carried state starts at zero

  const BatchMaker* maker = nullptr;  // makes inputs and targets, if the batch has only samples
  uint64_t seed = 0;                  // with epoch and sample, the key of augmentation
  int64_t epoch = 0;

  /// Gives the only input, the targets and `keys` samples their shapes, in the memory they have.
  void fit(const Shape& input, DType dtype, const Shape& target, int64_t keys) {
    inputs.resize(1);
    inputs[0] = inputs[0].fitted(input, dtype);
    targets = targets.fitted(target, DType::i32);
    samples = samples.fitted({keys}, DType::i64);
  }
};

}  // namespace wisp
