// An upload of a worker's batches to its device on a stream of its own, beside the computing
// stream, through two pinned buffers in turn. One thread.
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

  /// Starts the upload of the batch that operator() is expected to get next. If operator() then
  /// gets another batch, it starts that one and drops this upload. The caller may overwrite the
  /// memory of `batch` when this returns.
  void start(const Batch& batch);
  /// The batch on the context's device, in the order of its stream; on the CPU the batch itself.
  /// Lengths stay on the host. All work on the previous batch must already be in the context's
  /// stream.
  Batch operator()(const Batch& batch);

 private:
  /// Pinned copies of a batch's tensors. A later batch may reuse them once `copied` is reached.
  struct Slot {
    std::vector<Tensor> tensors;
    Event copied;
  };
  /// A batch whose upload has started.
  struct Started {
    Batch from, there;
    const Slot* slot;
  };

  void make_room(size_t place, int64_t bytes);
  Tensor upload(const Tensor& tensor, Slot& slot, size_t place);
  bool has_started(const Batch& batch) const;

  const Context& context_;
  std::array<Slot, 2> slots_;  // used in turn: the device may still copy from the other
  size_t next_ = 0;
  std::optional<Started> started_;
  Batch given_;    // the last batch; its users may not be in the stream yet
  Event used_;     // end of the work on earlier batches, whose memory copies may then reuse
  Stream copies_;  // last: its destructor waits for its work
};

}  // namespace wisp
