// A timer of a benchmark's work, by the clock of its stream. Used by the thread that submits it.
#pragma once

#include <functional>

#include "core/device/stream.h"

namespace wisp {

/// Milliseconds that `stream` needs for the work that work() submits, without earlier work. Waits
/// for the stream.
inline double time_ms(const Stream& stream, const std::function<void()>& work) {
  Event begin = Event::timed(), end = Event::timed();
  end.record(stream);  // creates a device's event now, outside the measured time
  begin.record(stream);
  work();
  end.record(stream);
  end.synchronize();
  return end.us_since(begin) * 1e-3;
}

}  // namespace wisp
