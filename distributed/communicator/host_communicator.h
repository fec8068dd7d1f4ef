// The base of communicators, which turns every function of Communicator into a Call and counts its
// bytes. Used by its rank's comm thread.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

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

  int64_t bytes_sent() const final { return bytes_sent_; }

 protected:
  /// The ranks that pass this rank's colour; all ranks call it together. `latest` is the latest
  /// generation that this rank is in. The result's is later, and the same for all.
  Roster split_roster(int colour, int latest) {
    struct Seat {
      int colour = 0, latest = 0;
    };
    const Seat own{colour, latest};
    std::vector<Seat> seats(roster().ranks.size());
    std::vector<Bytes> in;
    for (Seat& seat : seats) in.push_back({reinterpret_cast<std::byte*>(&seat), sizeof seat});
    const ConstBytes out{reinterpret_cast<const std::byte*>(&own), sizeof own};
    all_gather({&out, 1}, in)->wait();
    Roster group;
    for (size_t index = 0; index < seats.size(); ++index) {
      latest = std::max(latest, seats[index].latest);
      if (seats[index].colour != colour) continue;
      if (static_cast<int>(index) == rank()) group.rank = static_cast<int>(group.ranks.size());
      group.ranks.push_back(roster().ranks[index]);
    }
    group.generation = latest + 1;
    return group;
  }

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
