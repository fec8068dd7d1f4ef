// A collective as messages between processes: the message of this rank to each other rank, and the
// effect of received messages. It handles bytes only; it has no connection and no threads. Each
// message begins with its sender's call, so that the receiver can check that both mean the same
// collective. One thread at a time.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "distributed/communicator/collective.h"

namespace wisp {

class Mail {
 public:
  static constexpr int64_t kLeastBytes = 32;  // of a message

  Mail(Call call, int rank, int workers) : call_(std::move(call)), rank_(rank), workers_(workers) {}

  const CallLabel& label() const { return call_.label; }
  /// Rounds in which every rank writes to every other: in a reduction the shares, then their sums.
  int rounds() const { return call_.label.reduces() ? 2 : 1; }
  /// Whether all peers get the same message.
  bool same_for_all(int round) const;
  /// Writes the message for `peer` to the front of `memory`, which grows as needed.
  ConstBytes write(int round, int peer, std::vector<std::byte>& memory) const;
  /// A mismatch in the data that this rank sends to itself.
  std::optional<Mismatch> check_own() const;
  /// A mismatch in the message from `peer`. Its rank is -1 if the calls differ and neither rank is
  /// 0: a rank whose call differs from rank 0's reports itself.
  std::optional<Mismatch> check(int round, int peer, ConstBytes message) const;
  /// Takes in the checked messages of all other ranks (by rank), and ends the round.
  void read(int round, std::span<const ConstBytes> messages);
  Traffic traffic() const { return traffic_of(call_, rank_, workers_); }

 private:
  void reduce(std::span<const ConstBytes> messages);

  Call call_;
  const int rank_;
  const int workers_;
};

}  // namespace wisp
