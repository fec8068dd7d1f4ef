// The time of a worker's steps as spans in five lanes, for Perfetto and chrome://tracing. One
// thread at a time may write a lane; different threads may write different lanes at once.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace wisp {

/// Kinds of spans. compute and wait are on the compute thread, the others on the comm thread.
enum class Lane { compute, encode, wait, wire, decode };
constexpr int kLaneCount = 5;
const char* name_of(Lane lane);

struct TraceOptions {
  int64_t first_step = 0;  // the first step recorded
  int64_t steps = 0;       // number of recorded steps; 0: none
};

class Trace {
 public:
  struct Span {
    std::string name;
    double begin_us = 0.0, end_us = 0.0;  // on the clock of now_us()
    int64_t step = 0;
    int64_t bytes = 0;  // bytes moved; 0: none
  };

  /// Reserves memory for the spans of all recorded steps, up to a bound.
  Trace(int worker, TraceOptions options);

  /// Whether spans of `step` are recorded. Ask before building a name.
  bool records(int64_t step) const {
    return step >= options_.first_step && step - options_.first_step < options_.steps;
  }
  /// Keeps the span if its step is recorded.
  void span(Lane lane, std::string name, double begin_us, double end_us, int64_t step,
            int64_t bytes = 0);
  /// Call only when no thread writes to the lane.
  std::span<const Span> spans(Lane lane) const { return lanes_[static_cast<size_t>(lane)]; }
  /// All spans as text for write_trace(), shifted by `shift_us`. Call only when no thread writes.
  std::string events(double shift_us) const;

 private:
  int worker_;
  TraceOptions options_;
  std::array<std::vector<Span>, kLaneCount> lanes_;
};

/// Writes the events() of several workers as trace.json: one process per worker, one thread per
/// lane, complete events in microseconds. `remark` is a note for readers of the file. Throws Error
/// if the file cannot be written.
void write_trace(const std::string& path, std::span<const std::string> events,
                 const std::string& remark = "");

/// The spans in a run's trace.json from before the run was resumed.
struct EarlierSpans {
  std::string events;   // as text for write_trace()
  double end_us = 0.0;  // end of the last span; 0 if there is none
};

/// The spans of steps before `step`. They include the names of workers with ranks of `workers` or
/// more, which the resumed run does not have. Empty if the file does not exist or another program
/// wrote it.
EarlierSpans read_earlier_spans(const std::string& path, int64_t step, int workers);

}  // namespace wisp
