// Streams and events of CUDA devices, behind core/device/stream.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/device/device.h"

namespace wisp::cuda {

/// A cudaStream_t that runs beside all others, and as many bytes as asked for of the device's
/// memory that only its work uses, as long as it is there. The last owner of `handle` waits for the
/// work and destroys both.
struct OwnedStream {
  std::shared_ptr<void> handle;
  std::byte* scratch;
};
/// Throws Error if there is no such device, or no memory.
OwnedStream make_stream(Device device, int64_t scratch_bytes);
/// Waits for everything submitted so far. Throws Error for what any work of the device's threw.
void synchronize(void* stream);

/// A cudaEvent_t of a device's; with a time costs more.
std::shared_ptr<void> make_event(Device device, bool timed);
void record(void* event, void* stream);
void wait(void* event, void* stream);
void synchronize_event(void* event);
/// Whether the recorded point is reached. Does not block.
bool reached(void* event);
/// From one to the other, both timed and reached, to about half a microsecond.
double elapsed_us(void* begin, void* end);

/// In the order of `stream`; memory of the host's is pinned.
void copy_bytes(void* stream, const std::byte* from, std::byte* to, int64_t bytes);
void fill_bytes(void* stream, std::byte* to, int value, int64_t bytes);

}  // namespace wisp::cuda
