// What the emulated devices have been asked to do: an in-order queue for each stream, and points in
// them. Nothing runs by itself. Whoever waits for a point runs, in its own thread, what has to be
// done before it, so work is as late as the program's order allows, and what an event should have
// ordered is seen out of order. Any thread; a queue's tasks run one at a time.
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

/// A place in a queue: behind its first `position` tasks, which may not have been posted yet.
struct Point {
  std::shared_ptr<Queue> queue;  // null: reached
  int64_t position = 0;
};

struct Queue {
  struct Item {
    std::function<void()> run;  // or
    Point wait;
    int threads = 1;  // OpenMP's, of the thread that posted
  };

  int device = 0;
  std::deque<Item> items;
  int64_t posted = 0, done = 0;
  bool running = false;
};

class Queues {
 public:
  /// Of the process. Destroyed never.
  static Queues& get();

  std::shared_ptr<Queue> make(int device);
  void post(const std::shared_ptr<Queue>& queue, std::function<void()> task);
  /// What is posted from now on stays behind `point`.
  void post_wait(const std::shared_ptr<Queue>& queue, Point point);
  /// Behind everything that was posted so far.
  Point end(const std::shared_ptr<Queue>& queue);
  bool reached(const Point& point);
  /// Returns when the point is reached, having run what had to be.
  void drain(const Point& point);
  /// The same, as far as no other thread has to do something first. Whether the point is reached.
  bool try_drain(const Point& point);
  /// The point counts as reached: what was posted before it is never run.
  void pass(const Point& point);
  /// What was posted is never run, and its points are never reached.
  void strand(const std::shared_ptr<Queue>& queue);

  /// What the first task threw; empty if none did. From then on no task is run: they are passed.
  std::string failure();
  void fail(const std::string& why);
  /// For tests: what failed is forgotten.
  void forgive();

  /// For tests: 0 runs what a wait needs and no more; another number draws, whenever somebody
  /// waits, from all that could run, so that work may also be earlier than whatever does not wait
  /// for it.
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
