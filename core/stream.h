// A device's in-order queue, and events that order one stream after another. All device work, CPU
// work too, is submitted to a stream. The CPU's stream runs a task at once in the calling thread; a
// late CPU stream runs it on a thread of its own, which shows a missing event without a GPU.
// Streams are cheap value handles.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "core/device.h"

namespace wisp {

class WorkQueue;

class Stream {
 public:
  /// A CPU stream that runs each task inside submit().
  static Stream immediate();
  /// A CPU stream with a thread of its own, which uses `threads` OpenMP threads (tests).
  static Stream late(int threads = 1);

  Device device() const { return device_; }
  /// Different for each stream of the process; memory freed on one is reused on the same one only.
  int64_t id() const { return id_; }

  template <class Task>
  void submit(Task&& task) const {
    if (!queue_) {
      task();
    } else {
      post(std::function<void()>(std::forward<Task>(task)));
    }
  }

  /// Waits for everything submitted so far; rethrows what a task threw.
  void synchronize() const;
  /// The native handle of a CUDA stream (cudaStream_t); null on the CPU.
  void* native() const { return native_; }

 private:
  Stream() = default;
  void post(std::function<void()> task) const;

  Device device_;
  int64_t id_ = 0;
  std::shared_ptr<WorkQueue> queue_;
  void* native_ = nullptr;
};

/// A point in a stream that others can wait for. Reusable: record() again moves it. A stream whose
/// task threw passes its points too: its synchronize() tells what happened.
class Event {
 public:
  Event();
  void record(const Stream& stream);
  /// Orders later work of `stream` after the recorded point.
  void wait(const Stream& stream) const;
  /// Blocks the calling thread until the recorded point is reached.
  void synchronize() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace wisp
