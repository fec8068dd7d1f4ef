// The comm thread's waits for collectives and its stream, and the record of its costs and trace
// spans. Each collective sets its own time limit. Belongs to the comm thread.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "core/io/trace.h"
#include "distributed/accounting.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/inbox.h"
#include "distributed/exchange/message.h"
#include "distributed/stream_watch.h"

namespace wisp {

class Courier {
 public:
  /// `stream` is the comm thread's. The references outlive this object.
  Courier(Inbox& inbox, Trace& trace, const Stream& stream)
      : inbox_(inbox), trace_(trace), watch_(stream) {}

  /// Begins a step with gradients of `bytes_raw`. Device work that the step before left unfinished
  /// is timed in this step.
  void begin(int64_t bytes_raw, int workers) {
    cost = {};
    cost.bytes_raw = bytes_raw;
    cost.bytes_dense = std::llround(
        bytes_on_wire(Collective::all_reduce, static_cast<double>(bytes_raw), workers));
  }
  /// Returns when the collective's wait() would return or throw at once. Unlike wait(), it throws
  /// Inbox::Closed when the compute thread ends.
  void await(Pending& pending) {
    for (;;) {
      const uint64_t seen = inbox_.events();
      if (pending.ready()) return;
      if (!watch_.poll()) wait(seen, pending.ready_at_us());
    }
  }
  /// Returns when `done()`, which a callback of the stream makes true.
  template <class Done>
  void await_stream(const Done& done) {
    while (!done()) {
      const uint64_t seen = inbox_.events();
      if (!watch_.poll()) wait(seen, 0.0);
    }
  }
  /// Returns when the stream has finished all submitted work, and no callback is outstanding.
  void settle() {
    watch_.then(watch_.mark(), [](const StreamWatch::Span&) {});
    await_stream([&] { return watch_.idle(); });
  }
  /// Waits until the inbox was rung since `seen`, or until `until_us`. If callbacks of the stream
  /// are outstanding, only yields.
  void wait(uint64_t seen, double until_us = std::numeric_limits<double>::infinity()) {
    if (!watch_.idle()) {
      std::this_thread::yield();
      until_us = 0.0;
    }
    inbox_.wait(seen, until_us);
  }
  /// Counts a transfer, which was on the wire for `wire_us`.
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
  StreamWatch& watch() { return watch_; }

  StepCost cost;  // cost of the step under way

 private:
  Inbox& inbox_;
  Trace& trace_;
  StreamWatch watch_;
};

}  // namespace wisp
