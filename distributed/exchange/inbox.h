// The mailbox of a comm thread: items that became ready on the compute thread, and a bell that
// peers and links ring when a collective may have moved on. Any thread may post and ring; one
// thread takes and waits.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>

#include "core/base/clock.h"
#include "core/base/error.h"

namespace wisp {

class Inbox {
 public:
  /// Thrown by wait() after close().
  struct Closed : Error {
    Closed() : Error("the worker's compute thread ended in the middle of a step") {}
  };

  void post(int item) {
    {
      std::lock_guard lock(mutex_);
      items_.push_back(item);
      ++events_;
    }
    changed_.notify_all();
  }
  void ring() {
    {
      std::lock_guard lock(mutex_);
      ++events_;
    }
    changed_.notify_all();
  }
  /// Makes every current and later wait throw: the compute thread is going away.
  void close() {
    {
      std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }
  void clear() {
    std::lock_guard lock(mutex_);
    items_.clear();
  }

  /// The oldest item, or -1.
  int take() {
    std::lock_guard lock(mutex_);
    if (items_.empty()) return -1;
    const int item = items_.front();
    items_.pop_front();
    return item;
  }
  /// Counts posts and rings: read it before looking whether there is work, then wait for it to
  /// move.
  uint64_t events() {
    std::lock_guard lock(mutex_);
    return events_;
  }
  /// Waits until events() differs from `seen`, or the clock of now_us() shows `until_us`: a moment,
  /// because an interval is too long by all that a stopped process missed since it was computed.
  void wait(uint64_t seen, double until_us = std::numeric_limits<double>::infinity()) {
    std::unique_lock lock(mutex_);
    while (!closed_ && events_ == seen) {
      const double left_us = std::min(until_us - now_us(), kLongestSleepUs);
      if (left_us <= 0.0) return;
      changed_.wait_for(lock, std::chrono::duration<double, std::micro>(left_us));
    }
    if (closed_) throw Closed();
  }

 private:
  static constexpr double kLongestSleepUs = 1e9;  // infinity cannot be added to a point in time

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> items_;
  uint64_t events_ = 0;
  bool closed_ = false;
};

}  // namespace wisp
