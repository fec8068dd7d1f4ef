// How much devices were asked to do: what a step costs where each launch has a price. Counted for
// the whole process, whoever asks; any thread.
#pragma once

#include <cstdint>

namespace wisp {

struct DeviceWork {
  int64_t kernels = 0;  // launches of our own
  int64_t calls = 0;    // of libraries: a product, a convolution, a recurrent layer, a transform
  int64_t copies = 0;   // between host and device and on it, and fills
  int64_t waits = 0;    // in which a thread of the host's stands still for a stream or an event

  DeviceWork operator-(const DeviceWork& other) const {
    return {kernels - other.kernels, calls - other.calls, copies - other.copies,
            waits - other.waits};
  }
};

/// Since the program started.
DeviceWork device_work();
/// Adds to it.
void count_device_work(const DeviceWork& more);

}  // namespace wisp
