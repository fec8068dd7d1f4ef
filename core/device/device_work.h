// Counters of the operations that devices were given, because each launch costs time. They count
// the whole process. Any thread.
#pragma once

#include <cstdint>

namespace wisp {

struct DeviceWork {
  int64_t kernels = 0;    // launches of Wisp's kernels
  int64_t calls = 0;      // library calls: products, convolutions, recurrent layers, transforms
  int64_t copies = 0;     // copies between host and device and on it, and fills
  int64_t waits = 0;      // waits of a host thread for a stream or an event
  int64_t fallbacks = 0;  // convolutions in f32 because the library has none in bf16

  DeviceWork operator-(const DeviceWork& other) const {
    return {kernels - other.kernels, calls - other.calls, copies - other.copies,
            waits - other.waits, fallbacks - other.fallbacks};
  }
};

/// Counts since the program started.
DeviceWork device_work();
/// Adds to the counters.
void count_device_work(const DeviceWork& more);

}  // namespace wisp
