// The workers of a run as one process sees them: all of them (threads), or its own (processes). A
// communicator is called from one thread at a time, everything else from any.
#pragma once

#include <string>

#include "distributed/communicator/communicator.h"

namespace wisp {

class Group {
 public:
  virtual ~Group() = default;
  virtual int size() const = 0;
  /// The communicator of a rank that is this process's; it lives as long as the group.
  virtual Communicator& communicator(int rank) = 0;
  /// Ends all collectives of all ranks, with `cause` from `rank` unless there is one already.
  virtual void abort(int rank, const std::string& cause) = 0;
  /// "rank R: CAUSE" of the first failure (CAUSE alone in a world of one); empty if there is none.
  virtual std::string failure() const = 0;
};

/// Workers that are processes, seen from one of them. One object a process, for all its life.
/// Its destructor, after a failure, ends all processes, those that do not answer too, within
/// seconds, and does not return.
class ProcessGroup : public Group {
 public:
  virtual int rank() const = 0;
  /// Ranks on this one's machine, itself included.
  virtual int neighbours() const = 0;
  /// This one's place among them, by rank.
  virtual int local_rank() const = 0;
  /// Longest wait for another rank, in seconds.
  virtual void set_timeout(double timeout_s) = 0;
  /// After a failure: whether `peer` gets to its destructor within `limit_s`.
  virtual bool ends_too(int peer, double limit_s) = 0;
};

}  // namespace wisp
