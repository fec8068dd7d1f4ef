#include "core/base/work_queue.h"

#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace wisp {

WorkQueue::WorkQueue(const Task& start) try
    : tasks_(start ? 1 : 0, start), thread_([this] { run(); }) {
} catch (const std::system_error& error) {
  throw Error(concat("a thread did not start: ", error.what(),
                     "; are threads or addresses limited (ulimit -u, ulimit -v)?"));
}

WorkQueue::~WorkQueue() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkQueue::post(Task task) {
  {
    std::lock_guard lock(mutex_);
    if (failure_) return;
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
}

void WorkQueue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
  if (failure_) std::rethrow_exception(failure_);
}

void WorkQueue::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    {
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      std::exception_ptr failure;
      try {
        task();
      } catch (...) {
        failure = std::current_exception();
      }
      task = {};  // destroys the task's captures before drain() returns
      lock.lock();
      if (failure) {
        failure_ = failure;
        tasks_.clear();
      }
      busy_ = false;
    }
    changed_.notify_all();
  }
}

}  // namespace wisp
