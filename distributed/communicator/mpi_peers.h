// The other processes of an MPI job, seen from one of them: their places, and whether one has
// failed, was killed, or is about to end. The first known failure is kept. One thread at a time;
// the owner's lock ensures it.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "distributed/communicator/mpi_session.h"
#include "distributed/communicator/place.h"

namespace wisp {

class MpiPeers {
 public:
  /// Joins all processes. Collective.
  MpiPeers();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_peer(int rank) const { return rank != rank_; }
  /// Whether `rank` is on this rank's machine.
  bool is_neighbour(int rank) const {
    return places_[static_cast<size_t>(rank)].same_machine(places_[static_cast<size_t>(rank_)]);
  }
  /// Number of ranks below `end` on this rank's machine.
  int neighbours(int end) const;
  /// Number of cores to which the ranks of this machine are bound together; 0 if it is unknown.
  int cores() const;

  /// "rank R: CAUSE" of the failure; empty if there is none.
  const std::string& failure() const { return failure_; }
  /// Announces to all ranks that `rank` has failed, unless a failure is known.
  void fail(int rank, const std::string& cause);
  /// Receives a failure that another rank announced.
  void hear();
  /// Finds a peer process that was killed and could announce nothing, and calls fail() for it.
  /// what() names the operation in which this rank waits for it. Looks at most every 20 ms.
  void look_after(const std::function<std::string()>& what);
  /// Tells the others for which ranks `who`, a communicator of this process, waits now, unless they
  /// know. Without ranks: it no longer waits.
  void wait_for(const void* who, const std::vector<int>& ranks);
  /// Forgets `who`, which ends, perhaps after a failure.
  void forget(const void* who) { waits_.erase(who); }
  /// Whether the others know that `who` waits.
  bool said_to_wait(const void* who) const { return waits_.contains(who); }
  /// Whether a rank has said that it waits for this one.
  bool is_awaited() const;
  /// The ranks among `absent`, or those for which they wait themselves, that wait for nobody.
  std::vector<int> last_awaited(const std::vector<int>& absent);
  /// Whether a peer's process is known to have ended; false if it cannot be seen from here.
  bool gone(int peer) const;

  /// Announces to the others that this rank is about to end.
  void say_leaving() { tell_others("", kLeavingTag); }
  bool has_left(int peer);

 private:
  static constexpr int kFailureTag = 1, kLeavingTag = 2, kWaitingTag = 3;
  /// Words on their way to the others.
  struct Told {
    std::string words;
    std::vector<MPI_Request> sends;
  };

  void tell_others(const std::string& words, int tag);
  void tell_awaited();
  void hear_awaited();

  MPI_Comm words_;
  int rank_ = 0, size_ = 1;
  std::vector<Place> places_;  // indexed by rank
  std::string failure_;
  std::vector<char> left_;                         // indexed by rank
  std::map<const void*, std::vector<int>> waits_;  // of this rank's communicators
  std::vector<std::vector<int>> awaited_;          // what each rank last said
  std::list<Told> told_;
  double looked_us_ = 0.0;
};

}  // namespace wisp
