#include "core/cuda/stream.h"

#include <utility>

#include "core/cuda/check.h"
#include "core/cuda/device.h"
#include "core/cuda/memory.h"
#include "core/device/device_work.h"

namespace wisp::cuda {
namespace {

cudaStream_t stream_of(void* stream) { return static_cast<cudaStream_t>(stream); }

cudaEvent_t event_of(void* event) { return static_cast<cudaEvent_t>(event); }

}  // namespace

OwnedStream make_stream(Device device, int64_t scratch_bytes) {
  std::shared_ptr<AddressRange> scratch = cuda::reserve_addresses(device, scratch_bytes);
  const int64_t grain = scratch->granularity();
  if (!scratch->grow((scratch_bytes + grain - 1) / grain * grain))
    throw OutOfMemory(
        concat(device.str(), ": out of memory: no ", scratch_bytes, " bytes for a new stream"));
  cudaStream_t stream = nullptr;
  WISP_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::byte* const begin = scratch->begin();
  std::shared_ptr<void> handle(stream, [scratch = std::move(scratch)](void* owned) {
    cudaStreamSynchronize(stream_of(owned));  // users of the work have waited for it
    cudaStreamDestroy(stream_of(owned));
  });
  return {std::move(handle), begin};
}

void synchronize(void* stream) {
  count_device_work({.waits = 1});
  WISP_CUDA_CHECK(cudaStreamSynchronize(stream_of(stream)));
}

std::shared_ptr<void> make_event(Device device, bool timed) {
  use(device);
  cudaEvent_t event = nullptr;
  WISP_CUDA_CHECK(
      cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming));
  return {event, [](void* owned) { cudaEventDestroy(event_of(owned)); }};
}

void record(void* event, void* stream) {
  WISP_CUDA_CHECK(cudaEventRecord(event_of(event), stream_of(stream)));
}

void wait(void* event, void* stream) {
  WISP_CUDA_CHECK(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
}

void synchronize_event(void* event) {
  if (reached(event)) return;
  count_device_work({.waits = 1});
  WISP_CUDA_CHECK(cudaEventSynchronize(event_of(event)));
}

bool reached(void* event) {
  const cudaError_t status = cudaEventQuery(event_of(event));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // otherwise the next launch would report it
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

double elapsed_us(void* begin, void* end) {
  float ms = 0.0f;
  WISP_CUDA_CHECK(cudaEventElapsedTime(&ms, event_of(begin), event_of(end)));
  return static_cast<double>(ms) * 1e3;
}

void copy_bytes(void* stream, const std::byte* from, std::byte* to, int64_t bytes) {
  if (bytes == 0) return;
  WISP_CUDA_CHECK(
      cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream_of(stream)));
  count_device_work({.copies = 1});
}

void fill_bytes(void* stream, std::byte* to, int value, int64_t bytes) {
  if (bytes == 0) return;
  WISP_CUDA_CHECK(cudaMemsetAsync(to, value, static_cast<size_t>(bytes), stream_of(stream)));
  count_device_work({.copies = 1});
}

}  // namespace wisp::cuda
