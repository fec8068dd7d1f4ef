// The base of communicators on the host: every function of Communicator becomes a Call.
#pragma once

#include "distributed/communicator/collective.h"

namespace wisp {

class HostCommunicator : public Communicator {
 public:
  PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) final {
    return begin(all_reduce_call(data, dtype, op));
  }
  PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) final {
    return begin(all_gather_call(out, in, size()));
  }
  PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) final {
    return begin(all_to_all_call(out, in, size()));
  }
  PendingPtr broadcast(std::span<const Bytes> data, int root) final {
    return begin(broadcast_call(data, root, rank(), size()));
  }
  PendingPtr exchange(std::span<const Exchange> messages) final {
    return begin(exchange_call(messages, rank(), size()));
  }
  PendingPtr barrier() final { return begin(barrier_call(size())); }

 private:
  virtual PendingPtr begin(Call call) = 0;
};

}  // namespace wisp
