#include "core/device/stream_watch.h"

#include <exception>
#include <utility>

#include "core/base/clock.h"

namespace wisp {

StreamWatch::~StreamWatch() {
  if (!stream_.device().is_cuda()) return;
  try {
    stream_.synchronize();
  } catch (const std::exception& failure) {  // the worker that noticed has reported it
  }
}

/// Records a reused or new event.
Event StreamWatch::recorded() {
  if (spare_.empty()) spare_.push_back(Event::timed());
  Event event = std::move(spare_.back());
  spare_.pop_back();
  event.record(stream_);
  return event;
}

StreamWatch::Mark StreamWatch::mark() {
  Mark mark{.host_us = now_us()};
  if (stream_.device().is_cuda()) mark.event = recorded();
  return mark;
}

void StreamWatch::then(Mark begin, Next next) {
  if (!stream_.device().is_cuda()) stream_.synchronize();
  time(std::move(begin), std::move(next));
}

void StreamWatch::time(Mark begin, Next next) {
  if (stream_.device().is_cuda()) {
    ahead_.push_back({std::move(*begin.event), recorded(), std::move(next)});
  } else {
    next({begin.host_us, now_us()});
  }
}

bool StreamWatch::poll() {
  bool any = false;
  while (!ahead_.empty() && ahead_.front().end.reached()) {
    const Item item = std::move(ahead_.front());
    ahead_.pop_front();
    const double now = now_us(), took = item.end.us_since(item.begin);
    spare_.push_back(item.begin);
    spare_.push_back(item.end);
    item.next({now - took, now});
    any = true;
  }
  return any;
}

}  // namespace wisp
