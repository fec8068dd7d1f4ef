// The CUDA runtime's calls on emulated devices.
#include "core/emulated/runtime.h"

#include <cuda_runtime.h>
#include <execinfo.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/emulated/memory.h"
#include "core/emulated/queues.h"

struct CUstream_st {
  std::shared_ptr<wisp::emulated::Queue> queue;
};
struct CUevent_st {
  int device = 0;
  std::shared_ptr<std::atomic<double>> time_us;  // null: untimed
  std::mutex mutex;
  wisp::emulated::Point point;
  int polls = 0;  // "not ready" answers since it was recorded

  wisp::emulated::Point recorded() {
    std::lock_guard lock(mutex);
    return point;
  }
};

namespace wisp::emulated {
namespace {

constexpr size_t kPinnedAlignment = 4096;
constexpr int kVersion = 13000;  // version of the interface in cuda_runtime.h
constexpr char kName[] = "the CPU as if it were a device with memory of its own, for tests";

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::string last_message;
std::atomic<int> devices{2};
std::atomic<int> polls_before_work{2};

cudaError_t fail(cudaError_t error, std::string message) {
  last_error = error;
  last_message = std::move(message);
  return error;
}

/// Runs a call and turns its exception into a CUDA error.
template <class Call>
cudaError_t guarded(const Call& call) {
  try {
    return call();
  } catch (const std::exception& failure) {
    return fail(cudaErrorInvalidValue, failure.what());
  }
}

/// The error of a task. It is permanent, as on a real device.
cudaError_t health() {
  const std::string failure = Queues::get().failure();
  return failure.empty() ? cudaSuccess : fail(cudaErrorLaunchFailure, failure);
}

cudaError_t check_exists(int device) {
  if (0 <= device && device < devices) return cudaSuccess;
  return fail(cudaErrorInvalidDevice, concat("device ", device, ", there are ", devices.load()));
}

/// The waits for events that a test watches.
struct Watched {
  std::mutex mutex;
  bool watching = false;
  std::set<WaitPlace> places;
  WaitPlace left_out{};
};

Watched& watched() {
  static auto* waits = new Watched;
  return *waits;
}

/// Whether the current wait is left out.
[[gnu::noinline]] bool is_left_out() {
  Watched& waits = watched();
  std::lock_guard lock(waits.mutex);
  if (!waits.watching) return false;
  void* frames[6] = {};  // this function, the runtime's, core/cuda's, then Stream or Event
  if (backtrace(frames, 6) < 6) return false;
  const WaitPlace place{frames[3], frames[4], frames[5]};
  waits.places.insert(place);
  return place == waits.left_out;
}

/// The emulation's address of `bytes` bytes in a copy. Throws Error if a device could not access
/// them.
std::byte* place(const void* memory, size_t bytes) {
  if (std::byte* alias = Memory::get().alias(memory, bytes)) return alias;
  WISP_CHECK(Memory::get().is_pinned(memory, bytes), bytes, " bytes at ", memory,
             " of the host's are not pinned: the call would wait for the device");
  return const_cast<std::byte*>(static_cast<const std::byte*>(memory));
}

}  // namespace

void enqueue(void* stream, std::function<void()> task) {
  const std::shared_ptr<Queue>& queue = queue_of(stream);
  WISP_CHECK(queue->device == current_device, "launch: the stream is of device ", queue->device,
             ", the thread's current one is ", current_device, " (cudaSetDevice)");
  Queues::get().post(queue, std::move(task));
}

const std::shared_ptr<Queue>& queue_of(void* stream) {
  return static_cast<cudaStream_t>(stream)->queue;
}

void set_devices(int count) { devices = count; }

void set_polls(int count) { polls_before_work = count; }

std::set<WaitPlace> watch_waits(const WaitPlace& left_out) {
  Watched& waits = watched();
  std::lock_guard lock(waits.mutex);
  waits.watching = true;
  waits.left_out = left_out;
  return std::exchange(waits.places, {});
}

void forget_waits() {
  Watched& waits = watched();
  std::lock_guard lock(waits.mutex);
  waits.watching = false;
  waits.places.clear();
}

}  // namespace wisp::emulated

using namespace wisp::emulated;  // the functions below are CUDA's

const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaSuccess) return "no error";
  return error == last_error ? last_message.c_str() : "an error of an emulated device";
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorLaunchFailure:
      return "cudaErrorLaunchFailure";
  }
  return "unknown error";
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = devices;
  return *count > 0 ? cudaSuccess : fail(cudaErrorNoDevice, "there is no device");
}

cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t status = check_exists(device); status != cudaSuccess) return status;
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (const cudaError_t status = check_exists(device); status != cudaSuccess) return status;
  *properties = {.name = {}, .major = 9, .minor = 0};  // an H100's
  std::memcpy(properties->name, kName, sizeof kName);
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = Memory::get().limit();
  *free = *total - Memory::get().mapped_bytes();
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st{Queues::get().make(current_device)};
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  // a real device would continue the work, while its memory may be reused
  const bool idle = Queues::get().reached(Queues::get().end(stream->queue));
  if (!idle) Queues::get().fail("a stream was destroyed before its work was done");
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  Queues::get().drain(Queues::get().end(stream->queue));
  return health();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!is_left_out()) Queues::get().post_wait(stream->queue, event->recorded());
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st{.device = current_device};
  if ((flags & cudaEventDisableTiming) == 0)
    (*event)->time_us = std::make_shared<std::atomic<double>>(0.0);
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event->device != stream->queue->device)
    return fail(cudaErrorInvalidResourceHandle,
                wisp::concat("the event is of device ", event->device, ", the stream of ",
                             stream->queue->device));
  std::lock_guard lock(event->mutex);
  if (event->time_us)
    Queues::get().post(stream->queue, [time = event->time_us] { *time = wisp::now_us(); });
  event->point = Queues::get().end(stream->queue);
  event->polls = 0;
  return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Point point;
  {
    std::lock_guard lock(event->mutex);
    point = event->point;
    if (!Queues::get().reached(point) && event->polls++ < polls_before_work)
      return fail(cudaErrorNotReady, "the event is not reached yet");
  }
  const bool reached = Queues::get().try_drain(point);
  const cudaError_t status = health();
  if (reached || status != cudaSuccess) return status;
  return fail(cudaErrorNotReady, "the event is not reached yet");
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Queues::get().drain(event->recorded());
  return health();
}

cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t begin, cudaEvent_t end) {
  if (!begin->time_us || !end->time_us)
    return fail(cudaErrorInvalidResourceHandle, "the event has no time");
  for (const cudaEvent_t event : {begin, end}) {
    if (!Queues::get().reached(event->recorded()))
      return fail(cudaErrorNotReady, "the event is not reached yet");
  }
  *ms = static_cast<float>((*end->time_us - *begin->time_us) * 1e-3);
  return health();
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const size_t whole =
      (std::max<size_t>(bytes, 1) + kPinnedAlignment - 1) / kPinnedAlignment * kPinnedAlignment;
  *memory = std::aligned_alloc(kPinnedAlignment, whole);
  if (!*memory)
    return fail(cudaErrorMemoryAllocation, wisp::concat("no memory for ", bytes, " pinned bytes"));
  std::memset(*memory, kFresh, whole);
  Memory::get().pin(static_cast<std::byte*>(*memory), whole);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  const Memory::Pinned block = Memory::get().unpin(static_cast<std::byte*>(memory));
  if (!block) return fail(cudaErrorInvalidValue, "cudaFreeHost: not what cudaHostAlloc gave");
  if (block.use_count() > 1) {  // keep the memory, so that the copy harms nobody else
    Queues::get().fail("pinned memory was freed with a copy of it under way");
    return cudaSuccess;
  }
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return guarded([&] {
    std::byte* into = place(to, bytes);
    const std::byte* source = place(from, bytes);
    const Memory::Pinned to_block = Memory::get().share(to);
    const Memory::Pinned from_block = Memory::get().share(from);
    Queues::get().post(stream->queue, [into, source, bytes, to_block, from_block] {
      std::memcpy(into, source, bytes);
    });
    return cudaSuccess;
  });
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  return guarded([&] {
    std::byte* into = place(memory, bytes);
    Queues::get().post(stream->queue, [=] { std::memset(into, value, bytes); });
    return cudaSuccess;
  });
}
