// The comm thread of a worker: a queue of tasks that one thread works off, the mailbox in which the
// compute thread and other ranks reach it, and the status that all ranks agree on in a step.
#pragma once

#include <atomic>
#include <functional>

#include "core/base/work_queue.h"
#include "core/context.h"
#include "core/io/trace.h"
#include "distributed/exchange/courier.h"
#include "distributed/exchange/inbox.h"
#include "distributed/exchange/outcome.h"

namespace wisp {

class CommThread {
 public:
  /// `context` is the thread's own. The references outlive this object. The owner declares it
  /// behind everything that the tasks use.
  CommThread(Communicator& communicator, Context& context, Trace& trace);
  /// A task that waits throws Inbox::Closed.
  ~CommThread();
  CommThread(const CommThread&) = delete;
  CommThread& operator=(const CommThread&) = delete;

  // Called by the compute thread.
  /// Runs `task` after those that were posted before. If it fails, all ranks hear of it.
  void post(std::function<void()> task);
  /// Returns when all tasks are done. Throws what a task threw.
  void drain() { queue_.drain(); }
  /// Runs `task` between two steps, with the stream idle before and after it.
  void between_steps(const std::function<void()>& task);
  Inbox& inbox() { return inbox_; }

  /// Asks all ranks to stop after a step. Any thread.
  void request_stop() { stop_requested_ = true; }

  // Called by tasks, or by the compute thread while none runs.
  Courier& courier() { return courier_; }
  const Courier& courier() const { return courier_; }
  /// The decision of all ranks about a step, in which this one has `loss`, a scalar that the stream
  /// may read after `written`. Throws Error if the ranks' hashes differ.
  Outcome agree(const Event& written, const Tensor& loss, uint64_t hash, int64_t step);

 private:
  Communicator& communicator_;
  Context& context_;
  std::atomic<bool> stop_requested_{false};
  Tensor status_;  // u32 words; after agree(), their maximum over ranks
  Tensor loss_;    // the step's, in host memory
  Inbox inbox_;
  Courier courier_;
  WorkQueue queue_;  // last: its thread uses everything above
};

}  // namespace wisp
