// A device's in-order queue, and events that order one stream after another. All work, also the
// CPU's, is submitted to a stream. A CPU stream runs a task at once in the calling thread. A late
// CPU stream runs it on a thread of its own, which reveals a missing event without a GPU. A
// device's stream takes kernels, library calls and copies. Streams are cheap value handles. Threads
// that share one order their calls themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/device/device.h"
#include "core/device/stream_id.h"

namespace wisp {

class WorkQueue;

class Stream {
 public:
  /// A CPU stream that runs each task inside submit().
  static Stream immediate();
  /// A CPU stream with a thread of its own, which has `threads` OpenMP threads. For tests.
  static Stream late(int threads = 1);
  /// A new queue of `device`, independent of all others; an immediate stream for the CPU. Throws
  /// Error if the device does not exist.
  static Stream on(Device device);

  Device device() const { return device_; }
  /// Memory freed on a stream is reused only on the same stream, until the stream has ended.
  const StreamId& id() const;

  /// Submits host work. Throws Error on a device's stream, which cannot order it.
  template <class Task>
  void submit(Task&& task) const {
    if (!queue_ && !native_) {
      task();
    } else {
      post(std::function<void()>(std::forward<Task>(task)));
    }
  }
  /// Submits a kernel's loop, which takes `kernels` launches. A device gets only the bytes of
  /// `task`.
  template <class Task>
  void launch(const Task& task, int kernels = 1) const {
    static_assert(std::is_trivially_copyable_v<Task>, "a device gets a kernel's bytes");
    if (!native_) return submit(task);
    Task argument = task;
    clear_padding(argument);
    launch_bytes({&argument, sizeof argument, alignof(Task), kernels,
                  [](const void* copy) { (*static_cast<const Task*>(copy))(); }});
  }

  /// Zeroes the padding between members, whose garbage may look like an address.
  template <class Task>
  static void clear_padding([[maybe_unused]] Task& task) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&task);
#endif
#endif
  }

  /// Waits for everything submitted so far. Rethrows a task's exception.
  void synchronize() const;
  /// The native handle of a CUDA stream (cudaStream_t); null on the CPU.
  void* native() const { return native_; }
  /// kScratchBytes of device memory for a loop's data between its launches. Later work on the
  /// stream may overwrite it. Null on the CPU.
  std::byte* scratch() const { return scratch_; }
  static constexpr int64_t kScratchBytes = 64 << 10;

  /// A task as bytes, and the function that runs it.
  struct Launch {
    const void* bytes;
    size_t size, alignment;
    int kernels;
    void (*run)(const void*);
  };

 private:
  struct Life;

  Stream() = default;
  void post(std::function<void()> task) const;
  void launch_bytes(const Launch& launch) const;

  std::shared_ptr<Life> life_;  // owns the queue
  Device device_;
  WorkQueue* queue_ = nullptr;
  void* native_ = nullptr;
  std::byte* scratch_ = nullptr;
};

/// A point in a stream that others can wait for. record() again moves it. A stream whose task threw
/// still passes its points; its synchronize() reports the exception. Events of CPU streams order
/// CPU streams only, and events of devices order devices' streams only.
class Event {
 public:
  Event();
  /// An event that also records the time at which its point was reached.
  static Event timed();
  void record(const Stream& stream);
  /// Makes later work of `stream` wait for the recorded point.
  void wait(const Stream& stream) const;
  /// Blocks the calling thread until the recorded point is reached.
  void synchronize() const;
  /// Whether the recorded point is reached. Does not block.
  bool reached() const;
  /// Microseconds from `begin`'s point to this one. Both events must be timed, of one device, and
  /// reached.
  double us_since(const Event& begin) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
  bool timed_ = false;
  std::shared_ptr<void> native_;  // cudaEvent_t, after record() on a device's stream
  Device device_;                 // device of the recorded stream
};

}  // namespace wisp
