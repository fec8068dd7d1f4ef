// The time limit of a collective's wait for other ranks. All waits within the collective share it.
// The time between two looks counts as one stride at most, because a process that was stopped has
// not waited. Belongs to the thread that looks.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/clock.h"

namespace wisp {

/// Rests between two looks.
inline void sleep_us(double us) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(us));
}

class Deadline {
 public:
  /// Begins the wait.
  explicit Deadline(double timeout_s) : stride_us_(timeout_s * 1e6 / kStrides) { restart(); }

  /// Restarts the limit, because something has arrived or was taken.
  void restart(double at_us = now_us()) {
    looked_us_ = at_us;
    left_us_ = stride_us_ * kStrides;
  }
  /// Whether the time is up, after a look that found nothing. Look first, then call this.
  bool passed(double at_us = now_us()) {
    left_us_ -= std::min(at_us - looked_us_, stride_us_);
    looked_us_ = at_us;
    return left_us_ <= 0.0;
  }
  /// Whether a quarter of the time or more is up.
  bool is_long() const { return left_us_ <= 0.75 * kStrides * stride_us_; }
  /// The latest time for the next look, on the clock of now_us().
  double next_us() const { return looked_us_ + std::min(left_us_, stride_us_); }

 private:
  static constexpr int kStrides = 16;

  double stride_us_;
  double looked_us_ = 0.0, left_us_ = 0.0;
};

}  // namespace wisp
