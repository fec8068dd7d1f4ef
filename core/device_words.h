// A few words that kernels write and the host reads: a device tensor and its copy in pinned memory.
// On the CPU both are one tensor. For the thread that owns the stream.
#pragma once

#include "core/copy.h"

namespace wisp {

class DeviceWords {
 public:
  DeviceWords() = default;
  /// Both tensors are zeroed.
  DeviceWords(const Context& context, Shape shape, DType dtype)
      : device_(context.zeros(shape, dtype)),
        host_(device_.device().is_cuda() ? host_tensor(shape, dtype, device_.device()) : device_) {}

  /// The device tensor, which kernels write.
  const Tensor& device() const { return device_; }
  /// Enqueues a copy to the host on `stream`.
  void fetch(const Stream& stream) const {
    if (device_.device().is_cuda()) copy(stream, device_, host_);
  }
  /// The host tensor. Read it after the stream has completed the last fetch().
  const Tensor& host() const { return host_; }

 private:
  Tensor device_, host_;
};

}  // namespace wisp
