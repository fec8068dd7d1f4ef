// The mailbox of a comm thread: items that became ready on the compute thread, and a bell that
// rings when a collective may have progressed. Any thread may post and ring; one takes and waits.
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
    change([&] {
      items_.push_back(item);
      ++events_;
    });
  }
  void ring() {
    change([&] { ++events_; });
  }
  /// Makes every current and later wait throw, because the compute thread is ending.
  void close() {
    change([&] { closed_ = true; });
  }
  void clear() {
    std::lock_guard lock(mutex_);
    items_.clear();
  }

  /// Takes the oldest item; -1 if there is none.
  int take() {
    std::lock_guard lock(mutex_);
    if (items_.empty()) return -1;
    const int item = items_.front();
    items_.pop_front();
    return item;
  }
  /// Number of posts and rings so far. Read it, look for work, then wait for it to change.
  uint64_t events() {
    std::lock_guard lock(mutex_);
    return events_;
  }
  /// Waits until events() differs from `seen`, or until `until_us` on the clock of now_us(): an
  /// interval would be too long after the process was stopped.
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
  void change(const auto& make) {
    {
      std::lock_guard lock(mutex_);
      make();
    }
    changed_.notify_all();
  }

  static constexpr double kLongestSleepUs = 1e9;  // infinity cannot be added to a point in time

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<int> items_;
  uint64_t events_ = 0;
  bool closed_ = false;
};

}  // namespace wisp
