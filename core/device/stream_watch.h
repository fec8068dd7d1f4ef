// A watch of a stream: calls functions once the stream has reached a point, without blocking for
// it, and times the stream. Used by the stream's thread alone. The destructor waits for the work of
// a device's stream, whose memory must outlive the watch.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "core/device/stream.h"

namespace wisp {

class StreamWatch {
 public:
  /// The time of a stream's work between two points, in microseconds on the clock of now_us(). A
  /// device's has the measured length, and ends when poll() found the second point reached.
  struct Span {
    double begin_us = 0.0, end_us = 0.0;
    double ms() const { return (end_us - begin_us) * 1e-3; }
  };
  using Next = std::function<void(const Span&)>;
  /// A point from which work is timed.
  struct Mark {
    double host_us = 0.0;
    std::optional<Event> event;  // event of a device's stream
  };

  explicit StreamWatch(const Stream& stream) : stream_(stream) {}
  ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

  Mark mark();
  /// Calls `next` when the stream has finished everything submitted so far. With a CPU, waits for
  /// the stream and calls `next` at once. With a device, poll() calls it later, in the order of
  /// these calls.
  void then(Mark begin, Next next);
  /// Like then(), for a caller that needs only the time; does not wait for a CPU's stream.
  void time(Mark begin, Next next);
  /// Calls the functions that are due; returns whether there were any. Passes on their exceptions,
  /// and throws Error if the device failed.
  bool poll();
  /// Whether no function is outstanding.
  bool idle() const { return ahead_.empty(); }

 private:
  struct Item {
    Event begin, end;
    Next next;
  };
  Event recorded();

  const Stream stream_;
  std::deque<Item> ahead_;
  std::vector<Event> spare_;
};

}  // namespace wisp
