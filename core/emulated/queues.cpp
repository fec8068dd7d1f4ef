#include "core/emulated/queues.h"

#include <omp.h>

#include <exception>
#include <utility>

#include "core/base/omp_threads.h"
#include "core/random.h"

namespace wisp::emulated {
namespace {

/// Runs a task with the number of OpenMP threads of the thread that posted it. Returns its error.
std::string complaint_of(const Queue::Item& item) {
  const OmpThreads threads(item.threads);
  std::string complaint;
  try {
    item.run();
  } catch (const std::exception& failure) {
    complaint = failure.what();
  }
  return complaint;
}

}  // namespace

Queues& Queues::get() {
  static auto* queues = new Queues;
  return *queues;
}

std::shared_ptr<Queue> Queues::make(int device) {
  auto queue = std::make_shared<Queue>();
  queue->device = device;
  std::lock_guard lock(mutex_);
  std::erase_if(queues_, [](const auto& old) { return old.expired(); });
  queues_.push_back(queue);
  return queue;
}

void Queues::post(const std::shared_ptr<Queue>& queue, std::function<void()> task) {
  std::lock_guard lock(mutex_);
  queue->items.push_back({std::move(task), {}, omp_get_max_threads()});
  ++queue->posted;
  changed_.notify_all();
}

void Queues::post_wait(const std::shared_ptr<Queue>& queue, Point point) {
  std::lock_guard lock(mutex_);
  queue->items.push_back({{}, std::move(point)});
  ++queue->posted;
  changed_.notify_all();
}

Point Queues::end(const std::shared_ptr<Queue>& queue) {
  std::lock_guard lock(mutex_);
  return {queue, queue->posted};
}

bool Queues::reached_locked(const Point& point) const {
  return !point.queue || point.queue->done >= point.position;
}

bool Queues::reached(const Point& point) {
  std::lock_guard lock(mutex_);
  return reached_locked(point);
}

/// The queue whose first task must run before an unreached point can be reached. Null if that task
/// is running or not posted yet, or if only waits stood before the point. Removes the waits that
/// are over.
Queue* Queues::next(const Point& point) {
  Queue& queue = *point.queue;
  while (!queue.running && !queue.items.empty() && !reached_locked(point)) {
    const Queue::Item& first = queue.items.front();
    if (first.run) return &queue;
    if (!reached_locked(first.wait)) {
      if (Queue* const before = next(first.wait)) return before;
      if (!reached_locked(first.wait)) return nullptr;
    }
    const Queue::Item over = std::move(queue.items.front());
    queue.items.pop_front();
    ++queue.done;
    changed_.notify_all();
  }
  return nullptr;
}

/// A queue drawn from all that could run a task.
Queue* Queues::draw() {
  std::vector<Queue*> could;
  for (const auto& weak : queues_) {
    const std::shared_ptr<Queue> queue = weak.lock();
    if (!queue || queue->running || queue->items.empty()) continue;
    if (next({queue, queue->done + 1}) == queue.get()) could.push_back(queue.get());
  }
  const Philox random(shuffle_, drawn_++, 0);
  return could[random.below(0, static_cast<uint32_t>(could.size()))];
}

void Queues::run_one(Lock& lock, Queue& queue) {
  const Queue::Item item = std::move(queue.items.front());
  queue.items.pop_front();
  queue.running = true;
  const bool skip = !failure_.empty();
  lock.unlock();
  std::string complaint;
  if (!skip) complaint = complaint_of(item);
  lock.lock();
  if (failure_.empty()) failure_ = std::move(complaint);
  queue.running = false;
  ++queue.done;
  changed_.notify_all();
}

/// Runs one task that brings the point nearer; returns false if there is none to run now.
bool Queues::run_towards(Lock& lock, const Point& point) {
  Queue* const queue = reached_locked(point) ? nullptr : next(point);
  if (queue) run_one(lock, shuffle_ != 0 ? *draw() : *queue);
  return queue != nullptr;
}

void Queues::drain(const Point& point) {
  Lock lock(mutex_);
  while (!reached_locked(point)) {
    if (!run_towards(lock, point) && !reached_locked(point)) changed_.wait(lock);
  }
}

bool Queues::try_drain(const Point& point) {
  Lock lock(mutex_);
  while (run_towards(lock, point)) {
  }
  return reached_locked(point);
}

void Queues::pass(const Point& point) {
  std::lock_guard lock(mutex_);
  point.queue->items.clear();
  point.queue->done = point.queue->posted = point.position;
  changed_.notify_all();
}

void Queues::strand(const std::shared_ptr<Queue>& queue) {
  std::lock_guard lock(mutex_);
  queue->items.clear();
}

std::string Queues::failure() {
  std::lock_guard lock(mutex_);
  return failure_;
}

void Queues::fail(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why;
}

void Queues::forgive() {
  std::lock_guard lock(mutex_);
  failure_.clear();
}

void Queues::shuffle(uint64_t seed) {
  std::lock_guard lock(mutex_);
  shuffle_ = seed;
  drawn_ = 0;
}

}  // namespace wisp::emulated
