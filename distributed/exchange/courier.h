// Finishes the collectives of a comm thread: waits for them as long as is right, counts and traces
// them. Belongs to the comm thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include "core/clock.h"
#include "core/io/trace.h"
#include "distributed/accounting.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/inbox.h"
#include "distributed/exchange/message.h"

namespace wisp {

class Courier {
 public:
  /// The references outlive this object.
  Courier(Inbox& inbox, Trace& trace, double timeout_s)
      : inbox_(inbox), trace_(trace), timeout_s_(timeout_s) {}

  /// A step begins, whose gradients are of `bytes_raw`.
  void begin(int64_t bytes_raw, int workers) {
    cost = {};
    cost.bytes_raw = bytes_raw;
    cost.bytes_dense = std::llround(
        bytes_on_wire(Collective::all_reduce, static_cast<double>(bytes_raw), workers));
  }
  /// Returns when the collective can be finished at once, or has been waited for `timeout_s`: then
  /// its wait() throws, naming who did not come. Unlike wait() it ends when the compute thread goes
  /// away, with Inbox::Closed.
  void await(Pending& pending) {
    const double limit = now_us() + timeout_s_ * 1e6;
    for (;;) {
      const uint64_t seen = inbox_.events();
      const double now = now_us();
      if (pending.ready() || limit <= now) return;
      inbox_.wait(seen, std::min(pending.ready_at_us(), limit) - now);
    }
  }
  /// Counts what travelled, `wire_us` of the time on the wire.
  void count(const Transfer& transfer, double wire_us, const std::string& name, int64_t step) {
    cost.bytes_sent += transfer.sent;
    cost.bytes_received += transfer.received;
    cost.wire_ms += wire_us * 1e-3;
    trace_.span(Lane::wire, name, transfer.begin_us, transfer.end_us, step, transfer.sent);
  }
  void finish(Pending& pending, const std::string& name, int64_t step) {
    await(pending);
    const Transfer transfer = pending.wait();
    count(transfer, transfer.end_us - transfer.begin_us, name, step);
  }
  Trace& trace() { return trace_; }

  StepCost cost;  // of the step under way

 private:
  Inbox& inbox_;
  Trace& trace_;
  double timeout_s_;
};

}  // namespace wisp
