// All traffic between the host and devices, and on a device. A host tensor that a device copies
// from or to is pinned; one that is not goes through a pinned block.
#pragma once

#include "core/context.h"

namespace wisp {

/// A zeroed tensor of the host's that copies to and from `device` read and write directly: pinned,
/// where the device is not the CPU.
Tensor host_tensor(Shape shape, DType dtype, Device device);

/// Pinned memory, where the device is not the CPU.
std::shared_ptr<std::byte> pinned_block(int64_t bytes, Device device);

/// `to` becomes `from`, of the same shape and type, in the order of `stream`: a copy between host
/// and device needs a pinned host tensor, which stays as it is until the stream has come so far.
/// Throws Error if the two do not fit, or the stream is of neither's device.
void copy(const Stream& stream, const Tensor& from, const Tensor& to);
/// The same of bytes on a device's stream, one side of which is its device's.
void copy_bytes(const Stream& stream, const std::byte* from, std::byte* to, int64_t bytes);
/// The same, whatever host memory it is; returns when `to` is there. What other streams do with
/// either must be over.
void copy_now(const Stream& stream, const Tensor& from, const Tensor& to);
/// `x` as a host tensor that nobody changes any more: itself, if it is one and `stream` has come so
/// far. Waits for the stream.
Tensor fetch(const Stream& stream, const Tensor& x);
/// All bytes zero, in the order of `stream`.
void clear(const Stream& stream, const Tensor& x);
/// Two tensors of one size, on one device, exchange what they hold, in the order of `stream`.
void swap_contents(const Stream& stream, const Tensor& a, const Tensor& b);

/// Lets `write(tensor)` fill a host tensor, which is then what `x` holds; `x` itself, if it is one.
template <class Write>
void write_from_host(const Stream& stream, const Tensor& x, const Write& write) {
  if (!x.device().is_cuda()) return write(x);
  const Tensor host(x.shape(), x.dtype());
  write(host);
  copy_now(stream, host, x);
}

}  // namespace wisp
