// The CUDA runtime's calls, on emulated devices.
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

#include "core/emulated/memory.h"
#include "core/emulated/queues.h"
#include "core/error.h"

struct CUstream_st {
  std::shared_ptr<wisp::emulated::Queue> queue;
};
struct CUevent_st {
  int device = 0;
  std::mutex mutex;
  wisp::emulated::Point point;
  int polls = 0;  // since it was recorded, that were told to come again
};

namespace wisp::emulated {
namespace {

constexpr size_t kPinnedAlignment = 4096;

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local std::string last_message;  // NOLINT(cert-err58-cpp): an empty string does not throw
std::atomic<int> devices{2};
std::atomic<int> polls_before_work{2};

cudaError_t fail(cudaError_t error, std::string message) {
  last_error = error;
  last_message = std::move(message);
  return error;
}

/// Runs a call, and tells what it threw as CUDA does.
template <class Call>
cudaError_t guarded(const Call& call) {
  try {
    return call();
  } catch (const std::exception& failure) {
    return fail(cudaErrorInvalidValue, failure.what());
  }
}

/// An error of a task is for life, as a real device's.
cudaError_t health() {
  const std::string failure = Queues::get().failure();
  return failure.empty() ? cudaSuccess : fail(cudaErrorLaunchFailure, failure);
}

cudaError_t check_current(int device, const char* what) {
  if (device == current_device) return cudaSuccess;
  return fail(cudaErrorInvalidResourceHandle, concat("the ", what, " is of device ", device,
                                                     ", the thread's current one is ",
                                                     current_device, " (cudaSetDevice)"));
}

/// Waits that a test leaves out, by the address of the code that asks for them.
struct LeftOut {
  std::mutex mutex;
  bool watched = false;
  std::set<const void*> places;
  const void* left_out = nullptr;
};

LeftOut& left_out() {
  static auto* waits = new LeftOut;
  return *waits;
}

/// Whether the wait under way is to be left out: the code that called Event or Stream asks for it.
bool is_left_out() {
  LeftOut& waits = left_out();
  std::lock_guard lock(waits.mutex);
  if (!waits.watched) return false;
  // this function, the call of the runtime, core/cuda/, Event or Stream, and who called that
  void* frames[5] = {};
  if (backtrace(frames, 5) < 5) return false;
  waits.places.insert(frames[4]);
  return frames[4] == waits.left_out;
}

/// Where the emulation finds `bytes` that a copy names; throws Error if a device could not.
std::byte* place(const void* memory, size_t bytes) {
  if (std::byte* alias = Memory::get().alias(memory, bytes)) return alias;
  WISP_CHECK(Memory::get().is_pinned(memory, bytes), bytes, " bytes at ", memory,
             " of the host's are not pinned: the call would wait for the device");
  return const_cast<std::byte*>(static_cast<const std::byte*>(memory));
}

}  // namespace

void enqueue(void* stream, std::function<void()> task) {
  const auto* queue = static_cast<cudaStream_t>(stream);
  WISP_CHECK(check_current(queue->queue->device, "stream") == cudaSuccess, "launch: ",
             last_message);
  Queues::get().post(queue->queue, std::move(task));
}

void set_devices(int count) { devices = count; }

void set_polls(int count) { polls_before_work = count; }

std::vector<const void*> watch_waits(const void* left_out_place) {
  LeftOut& waits = left_out();
  std::lock_guard lock(waits.mutex);
  std::vector<const void*> seen(waits.places.begin(), waits.places.end());
  waits.places.clear();
  waits.watched = true;
  waits.left_out = left_out_place;
  return seen;
}

void forget_waits() {
  LeftOut& waits = left_out();
  std::lock_guard lock(waits.mutex);
  waits.watched = false;
  waits.places.clear();
  waits.left_out = nullptr;
}

}  // namespace wisp::emulated

using namespace wisp::emulated;  // NOLINT(google-build-using-namespace): what follows is CUDA's

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
  if (device < 0 || device >= devices)
    return fail(cudaErrorInvalidDevice,
                wisp::concat("device ", device, ", there are ", devices.load()));
  current_device = device;
  return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *total = Memory::get().limit();
  *free = *total - Memory::get().mapped_bytes();
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st{Queues::get().make(current_device)};
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Queues::get().drain(Queues::get().end(stream->queue));
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!is_left_out()) Queues::get().drain(Queues::get().end(stream->queue));
  return health();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  Point point;
  {
    std::lock_guard lock(event->mutex);
    point = event->point;
  }
  if (!is_left_out()) Queues::get().post_wait(stream->queue, point);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st{.device = current_device};
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
      return cudaErrorNotReady;
  }
  Queues::get().drain(point);
  return health();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Point point;
  {
    std::lock_guard lock(event->mutex);
    point = event->point;
  }
  if (!is_left_out()) Queues::get().drain(point);
  return health();
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  const size_t whole = (std::max<size_t>(bytes, 1) + kPinnedAlignment - 1) / kPinnedAlignment *
                       kPinnedAlignment;
  *memory = std::aligned_alloc(kPinnedAlignment, whole);
  if (!*memory)
    return fail(cudaErrorMemoryAllocation, wisp::concat("no memory for ", bytes, " pinned bytes"));
  Memory::get().pin(static_cast<std::byte*>(*memory), whole);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  if (!Memory::get().unpin(static_cast<std::byte*>(memory)))
    return fail(cudaErrorInvalidValue, "cudaFreeHost: not what cudaHostAlloc gave");
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  return guarded([&] {
    std::byte* into = place(to, bytes);
    const std::byte* source = place(from, bytes);
    Queues::get().post(stream->queue, [=] { std::memcpy(into, source, bytes); });
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
