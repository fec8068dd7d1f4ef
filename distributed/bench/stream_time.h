// What a benchmark's work costs, by the clock of the stream that it is given to.
#pragma once

#include <functional>

#include "core/device/stream.h"

namespace wisp {

/// Milliseconds that `stream` needs for what work() submits to it, and for nothing before it. Waits
/// for it.
inline double time_ms(const Stream& stream, const std::function<void()>& work) {
  Event begin = Event::timed(), end = Event::timed();
  end.record(stream);  // a device's event is made now, not within the time
  begin.record(stream);
  work();
  end.record(stream);
  end.synchronize();
  return end.us_since(begin) * 1e-3;
}

}  // namespace wisp
