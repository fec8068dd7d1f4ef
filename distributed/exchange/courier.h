// The comm thread's waits for collectives and its stream, and the record of its costs and trace
// spans. Each collective sets its own time limit. Belongs to the comm thread.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <thread>
#include <utility>

#include "core/device/stream_watch.h"
#include "core/io/trace.h"
#include "distributed/communicator/communicator.h"
#include "distributed/exchange/inbox.h"
#include "distributed/exchange/message_traffic.h"
#include "distributed/exchange/step_cost.h"

namespace wisp {

class Courier {
 public:
  /// A device's stream is asked this often without a pause, then after pauses of this length. Each
  /// question takes a lock of the driver, which the thread that launches needs, too.
  static constexpr int kImmediateAsks = 10;
  static constexpr double kPauseUs = 20.0;

  /// `stream` is the comm thread's. The references outlive this object.
  Courier(Inbox& inbox, Trace& trace, const Stream& stream)
      : inbox_(inbox), trace_(trace), watch_(stream), on_device_(stream.device().is_cuda()) {}

  /// Begins a step with gradients of `bytes_raw`. Device work that the step before left unfinished
  /// is timed in this one.
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
      if (poll()) continue;
      if (pending.ready()) return;
      wait(seen, pending.ready_at_us());
    }
  }
  /// Returns when `done()`, which a callback of the stream makes true.
  template <class Done>
  void await_stream(const Done& done) {
    for (;;) {
      const uint64_t seen = inbox_.events();
      if (poll()) continue;
      if (done()) return;
      wait(seen);
    }
  }
  /// Returns when the stream has finished all submitted work, and no callback is outstanding.
  void settle() {
    watch_.then(watch_.mark(), [](const StreamWatch::Span&) {});
    await_stream([&] { return watch_.idle(); });
  }
  /// Calls the callbacks that are due; returns whether there were any. A loop that may wait() calls
  /// it first in each turn.
  bool poll() {
    if (!std::exchange(waited_, false)) asks_ = 0;  // the turn before made progress
    return watch_.poll();
  }
  /// Waits until the inbox was rung since `seen`, or until `until_us`. If the next turn asks a
  /// device's stream, waits for kPauseUs at most.
  void wait(uint64_t seen, double until_us = std::numeric_limits<double>::infinity()) {
    if (on_device_) until_us = next_turn_us(until_us);
    waited_ = true;
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
  Inbox& inbox() { return inbox_; }
  Trace& trace() { return trace_; }
  StreamWatch& watch() { return watch_; }

  StepCost cost;  // cost of the step under way

 private:
  /// The time of the next turn. A turn asks the stream about callbacks. It also asks for a
  /// collective that begins when the stream has come to it, whose `until_us` is past.
  double next_turn_us(double until_us) {
    const double now = now_us();
    if (watch_.idle() && until_us > now) return until_us;
    if (++asks_ > kImmediateAsks) return now + kPauseUs;
    std::this_thread::yield();
    return now;
  }

  Inbox& inbox_;
  Trace& trace_;
  StreamWatch watch_;
  const bool on_device_;
  bool waited_ = false;  // whether the last turn ended in wait()
  int asks_ = 0;         // turns in a row that ended in wait()
};

}  // namespace wisp
