// Copies between the host and devices, and on a device. A host tensor that a device copies from or
// to directly must be pinned; other host tensors go through a pinned block.
#pragma once

#include "core/context.h"

namespace wisp {

/// A zeroed host tensor for direct copies to and from `device`. It is pinned unless the device is
/// the CPU.
Tensor host_tensor(Shape shape, DType dtype, Device device);

/// Pinned host memory for copies to and from `device`, which must not be the CPU.
std::shared_ptr<std::byte> pinned_block(int64_t bytes, Device device);

/// Copies `from` to `to`, of the same shape and type, in the order of `stream`. A copy between host
/// and device needs a pinned host tensor, which must not change before the stream has made the
/// copy. Throws Error if shapes or types differ, or if neither tensor is on the stream's device.
void copy(const Stream& stream, const Tensor& from, const Tensor& to);
/// copy() of bytes on a device's stream. At least one side lies on the stream's device.
void copy_bytes(const Stream& stream, const std::byte* from, std::byte* to, int64_t bytes);
/// copy() from or to any host memory. It returns when `to` is complete. Work of other streams on
/// either tensor must be complete before the call.
void copy_now(const Stream& stream, const Tensor& from, const Tensor& to);
/// `x` as a host tensor that no pending work of `stream` changes. Waits for the stream. A host
/// tensor is returned itself.
Tensor fetch(const Stream& stream, const Tensor& x);
/// Sets all bytes to zero, in the order of `stream`.
void clear(const Stream& stream, const Tensor& x);
/// Exchanges the contents of two tensors of one size on one device, in the order of `stream`.
void swap_contents(const Stream& stream, const Tensor& a, const Tensor& b);

/// Lets `write(tensor)` fill `x`. If `x` is on a device, `write` fills a host tensor, which is then
/// copied to `x`.
template <class Write>
void write_from_host(const Stream& stream, const Tensor& x, const Write& write) {
  if (!x.device().is_cuda()) return write(x);
  const Tensor host(x.shape(), x.dtype());
  write(host);
  copy_now(stream, host, x);
}

}  // namespace wisp
