// The communicator of workers that are threads of one process. A ThreadGroup may be used from any
// thread; each of its communicators from one thread at a time.
#pragma once

#include <memory>
#include <string>

#include "distributed/communicator.h"
#include "distributed/link.h"

namespace wisp {

class ThreadGroup {
 public:
  /// A wait of more than `timeout_s` seconds for another rank ends the group. With a link, every
  /// collective takes at least as long as its bytes would on it.
  explicit ThreadGroup(int workers, LinkSpec link = {}, double timeout_s = 60.0);
  ~ThreadGroup();
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  int size() const;
  /// Rank `rank`'s own communicator; it lives as long as the group.
  Communicator& communicator(int rank);
  /// Ends all collectives, with `cause` from `rank` unless there is one already.
  void abort(int rank, const std::string& cause);
  /// "rank R: CAUSE" of the first failure (CAUSE alone in a world of one); empty if there is none.
  std::string failure() const;

 private:
  class State;
  class Member;
  std::unique_ptr<State> state_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace wisp
