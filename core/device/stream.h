// A device's in-order queue, and events that order one stream after another. All device work, CPU
// work too, is submitted to a stream. The CPU's stream runs a task at once in the calling thread; a
// late CPU stream runs it on a thread of its own, which shows a missing event without a GPU; a
// device's takes kernels, its libraries' calls and copies. Streams are cheap value handles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/device/device.h"

namespace wisp {

class WorkQueue;

class Stream {
 public:
  /// A CPU stream that runs each task inside submit().
  static Stream immediate();
  /// A CPU stream with a thread of its own, which uses `threads` OpenMP threads (tests).
  static Stream late(int threads = 1);
  /// A queue of the device's, beside all others; of the CPU an immediate one. Throws Error if there
  /// is no such device.
  static Stream on(Device device);

  Device device() const { return device_; }
  /// Different for each stream of the process; memory freed on one is reused on the same one only.
  int64_t id() const { return id_; }

  /// Work of the host's. Throws Error on a device's stream, which could not order it.
  template <class Task>
  void submit(Task&& task) const {
    if (!queue_ && !native_) {
      task();
    } else {
      post(std::function<void()>(std::forward<Task>(task)));
    }
  }
  /// A kernel's loop, whose bytes are all that a device gets of it. It takes `kernels` launches.
  template <class Task>
  void launch(const Task& task, int kernels = 1) const {
    static_assert(std::is_trivially_copyable_v<Task>, "a device gets a kernel's bytes");
    if (!native_) return submit(task);
    Task argument = task;
    clear_padding(argument);
    launch_bytes({&argument, sizeof argument, alignof(Task), kernels,
                  [](const void* copy) { (*static_cast<const Task*>(copy))(); }});
  }

  /// Zeros between members, where what lies there may look like an address.
  template <class Task>
  static void clear_padding([[maybe_unused]] Task& task) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&task);
#endif
#endif
  }

  /// Waits for everything submitted so far; rethrows what a task threw.
  void synchronize() const;
  /// The native handle of a CUDA stream (cudaStream_t); null on the CPU.
  void* native() const { return native_.get(); }
  /// Of a device's stream, kScratchBytes of the device's memory for what one loop keeps between its
  /// launches: whatever follows on the stream may write there. Null on the CPU.
  std::byte* scratch() const { return scratch_; }
  static constexpr int64_t kScratchBytes = 64 << 10;

  /// A task as bytes, and what they are run by.
  struct Launch {
    const void* bytes;
    size_t size, alignment;
    int kernels;
    void (*run)(const void*);
  };

 private:
  Stream() = default;
  void post(std::function<void()> task) const;
  void launch_bytes(const Launch& launch) const;

  Device device_;
  int64_t id_ = 0;
  std::shared_ptr<WorkQueue> queue_;
  std::shared_ptr<void> native_;
  std::byte* scratch_ = nullptr;
};

/// A point in a stream that others can wait for. Reusable: record() again moves it. A stream whose
/// task threw passes its points too: its synchronize() tells what happened. Points of one kind of
/// device order streams of that kind only.
class Event {
 public:
  Event();
  /// One that keeps the time at which its point was reached, too.
  static Event timed();
  void record(const Stream& stream);
  /// Orders later work of `stream` after the recorded point.
  void wait(const Stream& stream) const;
  /// Blocks the calling thread until the recorded point is reached.
  void synchronize() const;
  /// Whether the recorded point is reached. Does not block.
  bool reached() const;
  /// Time of the stream's from `begin`'s point to this one, in microseconds. Both are timed, of one
  /// device, and reached.
  double us_since(const Event& begin) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  bool timed_ = false;
  std::shared_ptr<void> native_;  // cudaEvent_t, once recorded on a device's stream
  Device device_;                 // where it was recorded
};

}  // namespace wisp
