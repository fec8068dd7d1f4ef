// What the ranks tell each other of a step before anything else of it counts: a loss that is not
// finite, a wish to stop, and the hash of what they are about to exchange. Belongs to the comm
// thread.
#pragma once

#include "core/context.h"
#include "distributed/communicator/communicator.h"
#include "distributed/synchronizer.h"

namespace wisp {

class StatusSlot {
 public:
  /// The arguments outlive this object.
  StatusSlot(Communicator& communicator, Context& context);

  /// `loss`, a scalar, is computed where the stream is.
  void fetch(const Tensor& loss);
  /// When the stream has come to fetch().
  PendingPtr start(bool stop, uint64_t hash);
  /// What all ranks do with the step, when the collective has been waited for. Throws Error if
  /// their hashes differ.
  Outcome outcome(int64_t step) const;

 private:
  Communicator& communicator_;
  Context& context_;
  uint32_t hash_ = 0;
  Tensor words_;  // u32; the maximum over ranks
  Tensor loss_;   // of the step, on the host
};

}  // namespace wisp
