// How a worker's batches reach its device. One thread.
#pragma once

#include <array>
#include <vector>

#include "core/batch.h"
#include "core/context.h"

namespace wisp {

class BatchUpload {
 public:
  /// The context outlives this object.
  explicit BatchUpload(const Context& context) : context_(context) {}

  /// The batch where the context computes, in the order of its stream; on the CPU as it is. Lengths
  /// stay on the host.
  Batch operator()(Batch batch);

 private:
  /// Pinned copies of a batch's tensors, which a later batch may have when `copied` is reached.
  struct Slot {
    std::vector<Tensor> tensors;
    Event copied;
  };

  Tensor upload(const Tensor& tensor, Slot& slot, size_t place) const;

  const Context& context_;
  std::array<Slot, 2> slots_;  // in turn: the device may still copy the batch before
  size_t next_ = 0;
};

}  // namespace wisp
