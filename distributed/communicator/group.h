// The workers of a run as one process sees them: all of them (threads), or its own (processes).
// Each communicator is called from one thread at a time, everything else from any thread.
#pragma once

#include <string>

#include "distributed/communicator/communicator.h"

namespace wisp {

class Group {
 public:
  virtual ~Group() = default;
  virtual int size() const = 0;
  /// The communicator of a rank of this process; it lives as long as the group.
  virtual Communicator& communicator(int rank) = 0;
  /// Ends all collectives of all ranks with `cause` from `rank`, unless they have ended already.
  virtual void abort(int rank, const std::string& cause) = 0;
  /// "rank R: CAUSE" of the first failure (CAUSE alone with one worker); empty if there is none.
  virtual std::string failure() const = 0;
};

/// Workers that are processes, seen from one of them. One object per process, which lives until the
/// process ends. After a failure, the destructor ends all processes within seconds, including those
/// that do not answer, and does not return.
class ProcessGroup : public Group {
 public:
  virtual int rank() const = 0;
  /// Number of ranks on this rank's machine, itself included.
  virtual int neighbours() const = 0;
  /// Number of cores to which the ranks of this rank's machine are bound together; 0 if unknown.
  virtual int cores() const = 0;
  /// Index of this rank among those of its machine, in rank order.
  virtual int local_rank() const = 0;
  /// Sets the longest wait for another rank, in seconds.
  virtual void set_timeout(double timeout_s) = 0;
  /// After a failure: whether `peer` reaches its destructor within `limit_s` seconds.
  virtual bool ends_too(int peer, double limit_s) = 0;
};

}  // namespace wisp
