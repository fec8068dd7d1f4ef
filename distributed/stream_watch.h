// What a thread does once its stream has come to a point, without standing still for it, and how
// long the stream took. Used by the stream's thread alone. When it ends, so has what a device's
// stream was asked for: what that works on outlives it.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "core/device/stream.h"

namespace wisp {

class StreamWatch {
 public:
  /// What a stream did between two of its points, in microseconds on the clock of now_us(). A
  /// device's times are placed by the look that found the second point reached.
  struct Span {
    double begin_us = 0.0, end_us = 0.0;
    double ms() const { return (end_us - begin_us) * 1e-3; }
  };
  using Next = std::function<void(const Span&)>;
  /// A point from which work is timed.
  struct Mark {
    double host_us = 0.0;
    std::optional<Event> event;  // of a device's stream
  };

  explicit StreamWatch(const Stream& stream) : stream_(stream) {}
  ~StreamWatch();
  StreamWatch(const StreamWatch&) = delete;
  StreamWatch& operator=(const StreamWatch&) = delete;

  Mark mark();
  /// Calls `next` when the stream has come to all that was submitted so far: a CPU's is waited for,
  /// and `next` is called at once; a device's later, by poll(), in the order of these calls.
  void then(Mark begin, Next next);
  /// The same for one who only wants the time: a CPU's stream is not waited for.
  void time(Mark begin, Next next);
  /// Calls what is due. True if something was. Throws what it throws, and Error if the device
  /// failed.
  bool poll();
  /// Whether nothing is to be looked after.
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
