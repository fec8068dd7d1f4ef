// The status that ranks exchange before the rest of a step: a loss that is not finite, a request to
// stop, and the hash of the exchange plan. Belongs to the comm thread.
#pragma once

#include "core/context.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/outcome.h"

namespace wisp {

class StatusSlot {
 public:
  /// The arguments outlive this object.
  StatusSlot(Communicator& communicator, Context& context);

  /// Fetches `loss`, a scalar on the stream's device, in the order of the stream.
  void fetch(const Tensor& loss);
  /// Starts the collective; call it when the stream has passed fetch().
  PendingPtr start(bool stop, uint64_t hash);
  /// The common decision of all ranks about the step; call it when the collective is finished.
  /// Throws Error if hashes differ.
  Outcome outcome(int64_t step) const;

 private:
  Communicator& communicator_;
  Context& context_;
  uint32_t hash_ = 0;
  Tensor words_;  // u32; after the collective, the maximum over ranks
  Tensor loss_;   // loss of the step, in host memory
};

}  // namespace wisp
