// A collective as messages between processes: what this rank writes to each other rank, and what
// becomes of what the others wrote. Bytes only: no connection, no threads. In front of each message
// stands what its sender calls, so that the receiver sees whether both mean the same collective.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "distributed/communicator/collective.h"

namespace wisp {

class Mail {
 public:
  Mail(Call call, int rank, int workers);

  const CallLabel& label() const { return call_.label; }
  /// Rounds in which every rank writes to every other: 2 for all_reduce, first the shares, then
  /// their sums; else 1.
  int rounds() const;
  /// Whether all peers get the same message.
  bool same_for_all(int round) const;
  /// The message for `peer`, written to the front of `memory`, which grows as needed.
  ConstBytes write(int round, int peer, std::vector<std::byte>& memory) const;
  /// Why what this rank writes to itself does not fit.
  std::optional<Mismatch> check_own() const;
  /// Why the message that came from `peer` does not fit; its rank is -1 if a third rank's call is
  /// the reason, which is for that rank to report.
  std::optional<Mismatch> check(int round, int peer, ConstBytes message) const;
  /// Takes in what all others wrote, by rank, each checked. The round is over.
  void read(int round, std::span<const ConstBytes> messages);
  Traffic traffic() const { return traffic_of(call_, rank_, workers_); }

 private:
  void reduce(std::span<const ConstBytes> messages);

  Call call_;
  const int rank_;
  const int workers_;
};

}  // namespace wisp
