// The work of the emulated devices: an in-order queue for each stream, and points in queues.
// Nothing runs by itself. A thread that waits for a point runs the tasks required before it. Work
// is thus as late as the program's order allows, so a missing event shows as work out of order. Any
// thread; a queue's tasks run one at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace wisp::emulated {

struct Queue;

/// A point in a queue: after its first `position` tasks, some of which may not be posted yet.
struct Point {
  std::shared_ptr<Queue> queue;  // null: reached
  int64_t position = 0;
};

struct Queue {
  struct Item {
    std::function<void()> run;  // the task; empty for a wait
    Point wait;
    int threads = 1;  // OpenMP threads of the thread that posted
  };

  int device = 0;
  std::deque<Item> items;
  int64_t posted = 0, done = 0;
  bool running = false;
};

class Queues {
 public:
  /// The queues of the process. They are never destroyed.
  static Queues& get();

  std::shared_ptr<Queue> make(int device);
  void post(const std::shared_ptr<Queue>& queue, std::function<void()> task);
  /// Makes tasks that are posted from now on wait for `point`.
  void post_wait(const std::shared_ptr<Queue>& queue, Point point);
  /// The point after all tasks posted so far.
  Point end(const std::shared_ptr<Queue>& queue);
  bool reached(const Point& point);
  /// Runs the tasks before the point, and returns when it is reached.
  void drain(const Point& point);
  /// Like drain(), but returns instead of waiting for another thread. Returns whether the point is
  /// reached.
  bool try_drain(const Point& point);
  /// Marks the point as reached. Tasks before it never run.
  void pass(const Point& point);
  /// Drops all posted tasks. Their points are never reached.
  void strand(const std::shared_ptr<Queue>& queue);

  /// The first task's error; empty if there was none. After an error no task runs, but all count as
  /// done.
  std::string failure();
  void fail(const std::string& why);
  /// Forgets the error, for tests.
  void forgive();

  /// Sets the order of tasks, for tests. With 0 only tasks that a wait requires run. Any other
  /// number makes each wait draw from all tasks that could run, so tasks may also run early.
  void shuffle(uint64_t seed);

 private:
  using Lock = std::unique_lock<std::mutex>;

  bool reached_locked(const Point& point) const;
  Queue* next(const Point& point);
  bool run_towards(Lock& lock, const Point& point);
  Queue* draw();
  void run_one(Lock& lock, Queue& queue);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Queue>> queues_;
  std::string failure_;
  uint64_t shuffle_ = 0, drawn_ = 0;
};

}  // namespace wisp::emulated
