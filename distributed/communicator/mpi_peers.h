// The processes of an MPI job as one of them sees the others: where each runs, and whether one has
// failed, was killed, or is about to end. The first failure that is heard of stays. Its owner's
// lock makes the calls one at a time.
#pragma once

#include <string>
#include <vector>

#include "distributed/communicator/mpi_session.h"
#include "distributed/communicator/place.h"

namespace wisp {

class MpiPeers {
 public:
  /// Collective.
  MpiPeers();

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool is_peer(int rank) const { return rank != rank_; }
  /// Ranks below `end` on this one's machine.
  int neighbours(int end) const;

  /// "rank R: CAUSE", or empty.
  const std::string& failure() const { return failure_; }
  /// Says to all, unless a failure is known, that `rank` has failed.
  void fail(int rank, const std::string& cause);
  /// Takes in what others said.
  void hear();
  /// fail()s a process that was killed, which says nothing, and that this rank waits for in
  /// what() says. Looks at most every 20 ms.
  template <class What>
  void look_after(const What& what) {
    if (const int peer = killed(); peer >= 0) {
      hear();  // or did it?
      fail(peer, concat(end_of(peer), ", while rank ", rank_, " waited for it in ", what()));
    }
  }
  /// Whether a process has ended, as far as can be seen from here.
  bool gone(int peer) const;

  /// Tells the others that this rank is about to end, and whether one of them has.
  void say_leaving();
  bool has_left(int peer);

 private:
  int killed();
  std::string end_of(int peer) const;
  void tell_others(const std::string& words, int tag);

  MPI_Comm words_;
  int rank_ = 0, size_ = 1;
  std::vector<Place> places_;  // by rank
  std::string failure_;
  std::vector<char> left_;  // by rank
  double looked_us_ = 0.0;
};

}  // namespace wisp
