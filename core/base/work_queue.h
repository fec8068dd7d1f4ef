// One thread that runs tasks in the order they were posted. The only form of host concurrency in
// Wisp. Any thread may post; a task that throws stops the queue: later tasks are dropped and the
// exception waits for the owner.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace wisp {

class WorkQueue {
 public:
  using Task = std::function<void()>;

  /// Starts the thread; it runs `start` first (thread counts, names).
  explicit WorkQueue(Task start = {});
  /// Finishes the tasks already posted, then joins. An exception nobody asked for is dropped.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void post(Task task);
  /// Waits until every task posted so far has run; rethrows the first exception.
  void drain();

 private:
  void run(const Task& start);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::exception_ptr failure_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;  // last: starts when everything above exists
};

}  // namespace wisp
