// What a comm thread waits by: for collectives, as long as is right, and for its stream, never
// standing still for either; counts and traces what was done. Belongs to the comm thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>

#include "core/base/clock.h"
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
  Courier(Inbox& inbox, Trace& trace, const Stream& stream, double timeout_s)
      : inbox_(inbox), trace_(trace), watch_(stream), timeout_s_(timeout_s) {}

  /// A step begins, whose gradients are of `bytes_raw`. What a device had not done when the step
  /// before ended is timed in this one.
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
      if (!watch_.poll()) wait(seen, std::min(pending.ready_at_us(), limit) - now);
    }
  }
  /// Returns when `done()`, which what the stream has come to makes true.
  template <class Done>
  void await_stream(const Done& done) {
    while (!done()) {
      const uint64_t seen = inbox_.events();
      if (!watch_.poll()) wait(seen, 0.0);
    }
  }
  /// Returns when the stream has come to all that was submitted to it, and nothing is to follow.
  void settle() {
    watch_.then(watch_.mark(), [](const StreamWatch::Span&) {});
    await_stream([&] { return watch_.idle(); });
  }
  /// Waits until the inbox was rung since `seen`, at most `limit_us`; not at all, if the stream is
  /// to be looked after.
  void wait(uint64_t seen, double limit_us) {
    if (!watch_.idle()) {
      std::this_thread::yield();
      limit_us = 0.0;
    }
    inbox_.wait(seen, limit_us);
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
  StreamWatch& watch() { return watch_; }

  StepCost cost;  // of the step under way

 private:
  Inbox& inbox_;
  Trace& trace_;
  StreamWatch watch_;
  double timeout_s_;
};

}  // namespace wisp
