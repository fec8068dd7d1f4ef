// A thread that runs tasks in the order they were posted, the form of host concurrency in Wisp
// beside threads that live for one call. Any thread may post. Once a task has thrown, the queue
// drops all later tasks and drain() rethrows the exception.
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

  /// Starts the thread, whose first task is `start` (sets thread counts, names).
  explicit WorkQueue(const Task& start = {});
  /// Finishes the posted tasks, then joins the thread. Drops an exception that no drain() has
  /// rethrown.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void post(Task task);
  /// Waits until all tasks posted so far have run. Rethrows a task's exception, at each call.
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::exception_ptr failure_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;  // last member: the thread starts when all others exist
};

}  // namespace wisp
