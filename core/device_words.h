// A few words that kernels write and the host reads: the device's, and a copy in pinned memory. On
// the CPU the two are one. Belongs to whoever owns the stream.
#pragma once

#include "core/copy.h"

namespace wisp {

class DeviceWords {
 public:
  DeviceWords() = default;
  /// Zeros.
  DeviceWords(const Context& context, Shape shape, DType dtype)
      : device_(context.zeros(shape, dtype)),
        host_(device_.device().is_cuda() ? host_tensor(shape, dtype, device_.device()) : device_) {}

  /// What kernels write.
  const Tensor& device() const { return device_; }
  /// The host's copy becomes what the words are when `stream` comes so far.
  void fetch(const Stream& stream) const {
    if (device_.device().is_cuda()) copy(stream, device_, host_);
  }
  /// To be read when the stream has come to the last fetch().
  const Tensor& host() const { return host_; }

 private:
  Tensor device_, host_;
};

}  // namespace wisp
