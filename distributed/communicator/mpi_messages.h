// The messages of a round between this process and the others of a group: one to each, one from
// each. The size of a long message goes first. Its pieces follow, and MPI sends them unasked
// (docs/processes.md). One thread at a time; the owner's lock ensures it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "distributed/communicator/collective.h"
#include "distributed/communicator/mpi_peers.h"

namespace wisp {

/// The tag of a group's messages in a round; a rank is at most one round ahead of another. MPI
/// grants tags below 32768, so those of groups repeat, but never those of all ranks of the run.
constexpr int message_tag(int generation, int64_t round) {
  constexpr int kFirst = 16, kRounds = 8, kGroups = 4093;
  const int group = generation == 0 ? 0 : 1 + (generation - 1) % kGroups;
  return kFirst + group * kRounds + static_cast<int>(round % kRounds);
}

class MpiMessages {
 public:
  /// The messages among `group` travel in `comm`, whose ranks are those of `peers`, which outlives
  /// this object.
  MpiMessages(const MpiPeers& peers, MPI_Comm comm, Roster group);

  /// Begins a round after the one before has ended. All ranks give the same number `round`, another
  /// one than for the rounds just before.
  void start_round(int64_t round);
  /// Memory to write the message to `peer` in; it is kept for later rounds.
  std::vector<std::byte>& memory_for(int peer) { return outgoing_[index(peer)].memory; }
  /// Sends a short message to `peer`, or the size of a long one, whose pieces send_more() sends.
  /// The memory must not change before all is sent.
  void send(int peer, ConstBytes message);
  /// Sends the pieces that are due. Returns whether MPI took any or has done with any.
  bool send_more();
  /// Takes in what has arrived, and calls accept(peer) for each complete message. accept returns
  /// whether the message fits. Returns false if nothing has arrived.
  bool receive(const std::function<bool(int peer)>& accept);

  /// Whether the size of the message from `peer` is known.
  bool has_come(int peer) const { return incoming_[index(peer)].known; }
  /// Whether all of the message from `peer` is here.
  bool is_here(int peer) const { return incoming_[index(peer)].here; }
  /// When the last peer came; before that, when the round began.
  double all_came_us() const { return all_came_us_; }
  bool all_accepted() const { return accepted_ == others(); }
  /// The message from `peer` that is here; empty for this rank itself.
  ConstBytes from(int peer) const {
    return {incoming_[index(peer)].memory.data(), incoming_[index(peer)].bytes};
  }
  /// Whether MPI had done with the memory of the message to `peer` at the last send_more().
  bool is_sent(int peer) const { return outgoing_[index(peer)].is_sent(); }
  bool all_are_sent() const { return std::ranges::all_of(outgoing_, &Outgoing::is_sent); }

 private:
  struct Incoming {
    bool known = false, here = false;  // its size is known; all of it has come
    int64_t bytes = 0;
    std::vector<std::byte> memory;
    std::vector<MPI_Request> pieces;  // in the order of the memory
    size_t arrived = 0;               // number of pieces

    std::byte* make_room(int64_t size);
  };
  struct Outgoing {
    int64_t size = 0;                // of a long message
    ConstBytes rest;                 // of a long message, not yet given to MPI
    std::vector<MPI_Request> sends;  // under way, in order
    std::vector<std::byte> memory;

    bool is_sent() const { return sends.empty() && rest.bytes == 0; }
  };

  static size_t index(int peer) { return static_cast<size_t>(peer); }
  int size() const { return static_cast<int>(group_.ranks.size()); }
  int others() const { return size() - 1; }
  int in_run(int peer) const { return group_.ranks[index(peer)]; }
  int from_run(int rank) const;
  int64_t piece_bytes(int peer) const;
  void start_send(int peer, const void* data, int64_t bytes);
  bool hear();
  void receive_pieces(int peer, int64_t bytes);

  const MpiPeers& peers_;
  const MPI_Comm comm_;
  const Roster group_;
  int tag_ = 0;
  double all_came_us_ = 0.0;
  int known_ = 0, accepted_ = 0;    // number of messages
  std::vector<Incoming> incoming_;  // indexed by rank
  std::vector<Outgoing> outgoing_;
};

}  // namespace wisp
