// Streams and events of CUDA devices, for core/device/stream.h. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device/device.h"

namespace wisp::cuda {

/// A cudaStream_t that is concurrent with all others, and scratch memory on its device for its
/// work. The last owner of `handle` waits for the work and destroys both.
struct OwnedStream {
  std::shared_ptr<void> handle;
  std::byte* scratch;
};
/// Throws Error if there is no such device, or not enough memory.
OwnedStream make_stream(Device device, int64_t scratch_bytes);
/// Waits for everything submitted so far. Throws Error if any work of the device failed.
void synchronize(void* stream);

/// A cudaEvent_t of a device. A timed event costs more.
std::shared_ptr<void> make_event(Device device, bool timed);
void record(void* event, void* stream);
void wait(void* event, void* stream);
void synchronize_event(void* event);
/// Whether the device has reached the recorded point. Does not block.
bool reached(void* event);
/// Time from one event to the other, to about half a microsecond. Both are timed and reached.
double elapsed_us(void* begin, void* end);

/// Copies in the order of `stream`. Host memory must be pinned.
void copy_bytes(void* stream, const std::byte* from, std::byte* to, int64_t bytes);
void fill_bytes(void* stream, std::byte* to, int value, int64_t bytes);

}  // namespace wisp::cuda
