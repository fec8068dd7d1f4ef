// How a worker's batches reach its device: by a stream of their own, beside what computes, through
// two pinned blocks in turn. One thread.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "core/batch.h"
#include "core/context.h"

namespace wisp {

class BatchUpload {
 public:
  /// The context outlives this object.
  explicit BatchUpload(const Context& context)
      : context_(context), copies_(Stream::on(context.stream.device())) {}

  /// Begins with the batch that operator() is going to be given next. It is not if that is given
  /// another, as it begins with that then. The memory of `batch` may change when this returns.
  void start(const Batch& batch);
  /// The batch where the context computes, in the order of its stream; on the CPU as it is. Lengths
  /// stay on the host. All that uses the one before must be in the context's stream by now.
  Batch operator()(const Batch& batch);

 private:
  /// Pinned copies of a batch's tensors, which a later batch may have when `copied` is reached.
  struct Slot {
    std::vector<Tensor> tensors;
    Event copied;
  };
  /// A batch on its way.
  struct Started {
    Batch from, there;
    const Slot* slot;
  };

  void make_room(size_t place, int64_t bytes);
  Tensor upload(const Tensor& tensor, Slot& slot, size_t place);
  bool has_started(const Batch& batch) const;

  const Context& context_;
  std::array<Slot, 2> slots_;  // in turn: the device may still copy the batch before
  size_t next_ = 0;
  std::optional<Started> started_;
  Batch given_;    // kept, as what uses it may not be in the context's stream yet
  Event used_;     // what used the batches before, whose memory copies may write from then on
  Stream copies_;  // last: it ends when its work has
};

}  // namespace wisp
