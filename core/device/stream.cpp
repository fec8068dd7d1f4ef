#include "core/device/stream.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/omp_threads.h"
#include "core/base/work_queue.h"
#include "core/cuda/stream.h"

namespace wisp {

/// What the handles of a stream share. The last one waits for the work, then the stream has ended.
struct Stream::Life {
  explicit Life(int64_t number) : id(number, ended) {}
  ~Life() {
    queue.reset();
    native.reset();
    ended->store(true, std::memory_order_release);
  }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  const std::shared_ptr<std::atomic<bool>> ended = std::make_shared<std::atomic<bool>>(false);
  const StreamId id;
  std::unique_ptr<WorkQueue> queue;
  std::shared_ptr<void> native;
};

const StreamId& Stream::id() const { return life_->id; }

Stream Stream::immediate() {
  static std::atomic<int64_t> next_id{1};
  Stream stream;
  stream.life_ = std::make_shared<Life>(next_id++);
  return stream;
}

Stream Stream::late(int threads) {
  Stream stream = immediate();
  stream.life_->queue = std::make_unique<WorkQueue>([threads] { set_omp_threads(threads); });
  stream.queue_ = stream.life_->queue.get();
  return stream;
}

Stream Stream::on(Device device) {
  Stream stream = immediate();
  if (!device.is_cuda()) return stream;
  stream.device_ = device;
  cuda::OwnedStream owned = cuda::make_stream(device, kScratchBytes);
  stream.native_ = owned.handle.get();
  stream.life_->native = std::move(owned.handle);
  stream.scratch_ = owned.scratch;
  return stream;
}

void Stream::post(std::function<void()> task) const {
  WISP_CHECK(queue_, "a stream of ", device_.str(),
             " was given work of the host's, which it cannot order");
  queue_->post(std::move(task));
}

void Stream::synchronize() const {
  if (native_) cuda::synchronize(native_);
  if (queue_) queue_->drain();
}

struct Event::State {
  std::mutex mutex;
  std::condition_variable changed;
  int64_t recorded = 0;
  int64_t reached = 0;
  double reached_us = 0.0;  // on the clock of now_us()

  void reach(int64_t point) {
    {
      std::lock_guard lock(mutex);
      if (point > reached) {
        reached = point;
        reached_us = now_us();
      }
    }
    changed.notify_all();
  }
  int64_t recorded_now() {
    std::lock_guard lock(mutex);
    return recorded;
  }
  bool has_reached(int64_t point) {
    std::lock_guard lock(mutex);
    return reached >= point;
  }
  void wait_for(int64_t point) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return reached >= point; });
  }
};

Event::Event() : state_(std::make_shared<State>()) {}

Event Event::timed() {
  Event event;
  event.timed_ = true;
  return event;
}

void Event::record(const Stream& stream) {
  if (stream.device().is_cuda()) {
    if (!native_ || device_ != stream.device()) native_ = cuda::make_event(stream.device(), timed_);
    device_ = stream.device();
    return cuda::record(native_.get(), stream.native());
  }
  device_ = {};
  int64_t point;
  {
    std::lock_guard lock(state_->mutex);
    point = ++state_->recorded;
  }
  // the point is reached when the task is destroyed: it ran, or a failed stream dropped it
  std::shared_ptr<void> reached(nullptr, [state = state_, point](void*) { state->reach(point); });
  stream.submit([reached = std::move(reached)] {});
}

void Event::wait(const Stream& stream) const {
  if (device_.is_cuda() && stream.device().is_cuda())
    return cuda::wait(native_.get(), stream.native());
  const bool recorded = device_.is_cuda() || state_->recorded_now() > 0;
  if (!recorded) return;
  // always refused, even if the point is reached, which depends on timing
  WISP_CHECK(device_.is_cuda() == stream.device().is_cuda(), "a stream of ", stream.device().str(),
             " cannot wait for work of ", device_.str());
  stream.submit([state = state_, point = state_->recorded_now()] { state->wait_for(point); });
}

void Event::synchronize() const {
  if (device_.is_cuda()) return cuda::synchronize_event(native_.get());
  state_->wait_for(state_->recorded_now());
}

bool Event::reached() const {
  if (device_.is_cuda()) return cuda::reached(native_.get());
  return state_->has_reached(state_->recorded_now());
}

double Event::us_since(const Event& begin) const {
  WISP_CHECK(timed_ && begin.timed_ && device_ == begin.device_,
             "the time between events that are not timed, or of two devices");
  WISP_CHECK(reached(), "the time of an event that is not reached yet");
  if (device_.is_cuda()) return cuda::elapsed_us(begin.native_.get(), native_.get());
  return state_->reached_us - begin.state_->reached_us;
}

}  // namespace wisp
