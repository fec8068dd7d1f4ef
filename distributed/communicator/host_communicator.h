// The base of communicators, which turns every function of Communicator into a Call and counts its
// bytes. Used by its rank's comm thread.
#pragma once

#include <utility>

#include "distributed/communicator/collective.h"

namespace wisp {

class HostCommunicator : public Communicator {
 public:
  PendingPtr all_reduce(std::span<const Bytes> data, DType dtype, ReduceOp op) final {
    return count(all_reduce_call(data, dtype, op));
  }
  PendingPtr all_gather(std::span<const ConstBytes> out, std::span<const Bytes> in) final {
    return count(all_gather_call(out, in, size()));
  }
  PendingPtr all_to_all(std::span<const ConstBytes> out, std::span<const Bytes> in) final {
    return count(all_to_all_call(out, in, size()));
  }
  PendingPtr exchange(std::span<const Exchange> messages) final {
    return count(exchange_call(messages, rank(), size()));
  }
  PendingPtr barrier() final { return count(barrier_call(size())); }

  int64_t bytes_sent() const override { return bytes_sent_; }

 protected:
  /// The ranks that pass this rank's colour; all ranks call it together. `latest` is the latest
  /// generation that this rank is in. The result's is later, and the same for all.
  Roster split_roster(int colour, int latest);

 private:
  PendingPtr count(Call call) {
    call.label.generation = roster().generation;
    bytes_sent_ += traffic_of(call, rank(), size()).sent;
    return begin(std::move(call));
  }
  virtual PendingPtr begin(Call call) = 0;

  int64_t bytes_sent_ = 0;
};

}  // namespace wisp
