// Finishes the collectives of a comm thread: waits for them as long as is right, counts and traces
// them. Belongs to the comm thread.
#pragma once

#include <string>

#include "core/io/trace.h"
#include "distributed/accounting.h"
#include "distributed/exchange/await.h"

namespace wisp {

class Courier {
 public:
  /// The references outlive this object.
  Courier(Inbox& inbox, Trace& trace, double timeout_s)
      : inbox_(inbox), trace_(trace), timeout_s_(timeout_s) {}

  void await(Pending& pending) { wisp::await(pending, inbox_, timeout_s_); }
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
