#include "core/stream.h"

#include <omp.h>

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/work_queue.h"

namespace wisp {
namespace {

int64_t next_stream_id() {
  static std::atomic<int64_t> next{1};
  return next++;
}

}  // namespace

Stream Stream::immediate() {
  Stream stream;
  stream.id_ = next_stream_id();
  return stream;
}

Stream Stream::late(int threads) {
  Stream stream = immediate();
  stream.queue_ = std::make_shared<WorkQueue>([threads] { omp_set_num_threads(threads); });
  return stream;
}

void Stream::post(std::function<void()> task) const { queue_->post(std::move(task)); }

void Stream::synchronize() const {
  if (queue_) queue_->drain();
}

struct Event::State {
  std::mutex mutex;
  std::condition_variable changed;
  int64_t recorded = 0;
  int64_t reached = 0;

  void reach(int64_t point) {
    {
      std::lock_guard lock(mutex);
      if (point > reached) reached = point;
    }
    changed.notify_all();
  }
  void wait_for(int64_t point) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= point; });
  }
};

Event::Event() : state_(std::make_shared<State>()) {}

void Event::record(const Stream& stream) {
  int64_t point;
  {
    std::lock_guard lock(state_->mutex);
    point = ++state_->recorded;
  }
  // the point counts as reached when the task is gone: it ran, or a failed stream dropped it
  std::shared_ptr<void> reached(nullptr, [state = state_, point](void*) { state->reach(point); });
  stream.submit([reached = std::move(reached)] {});
}

void Event::wait(const Stream& stream) const {
  int64_t point;
  {
    std::lock_guard lock(state_->mutex);
    point = state_->recorded;
  }
  stream.submit([state = state_, point] { state->wait_for(point); });
}

void Event::synchronize() const {
  int64_t point;
  {
    std::lock_guard lock(state_->mutex);
    point = state_->recorded;
  }
  state_->wait_for(point);
}

}  // namespace wisp
