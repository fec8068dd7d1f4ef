#include "core/copy.h"

#include <algorithm>
#include <cstring>

#include "core/cuda/memory.h"
#include "core/cuda/stream.h"
#include "core/error.h"

namespace wisp {
namespace {

void check(const Stream& stream, const Tensor& from, const Tensor& to) {
  WISP_CHECK(from.shape() == to.shape() && from.dtype() == to.dtype(), "copy: from ", from.shape(),
             " ", name_of(from.dtype()), " to ", to.shape(), " ", name_of(to.dtype()));
  for (const Tensor* side : {&from, &to}) {
    WISP_CHECK(!side->device().is_cuda() || side->device() == stream.device(), "copy: a tensor on ",
               side->device().str(), " by a stream of ", stream.device().str());
  }
}

bool on_host(const Tensor& a, const Tensor& b) {
  return !a.device().is_cuda() && !b.device().is_cuda();
}

void copy_on_host(const std::byte* from, std::byte* to, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

Tensor Context::zeros(Shape shape, DType dtype) const {
  const Tensor tensor = empty(shape, dtype);
  if (tensor.device().is_cuda()) {
    clear(stream, tensor);
    stream.synchronize();
  } else {
    tensor.clear();
  }
  return tensor;
}

Tensor host_tensor(Shape shape, DType dtype, Device device) {
  if (!device.is_cuda()) return {shape, dtype};
  const int64_t bytes = std::max<int64_t>(shape.numel() * size_of(dtype), 1);
  const Tensor tensor(shape, dtype, cuda::make_pinned(bytes));
  tensor.clear();
  return tensor;
}

void copy(const Stream& stream, const Tensor& from, const Tensor& to) {
  check(stream, from, to);
  if (!stream.device().is_cuda()) {
    stream.submit([from = from.raw(), to = to.raw(), bytes = to.bytes()] { copy_on_host(from, to, bytes); });
    return;
  }
  WISP_CHECK(!on_host(from, to), "copy: both tensors are the host's, the stream is ",
             stream.device().str(), "'s");
  const cuda::Way way = !from.device().is_cuda() ? cuda::Way::to_device
                        : to.device().is_cuda()  ? cuda::Way::on_device
                                                 : cuda::Way::to_host;
  cuda::copy_bytes(stream.native(), to.raw(), from.raw(), to.bytes(), way);
}

void copy_now(const Stream& stream, const Tensor& from, const Tensor& to) {
  check(stream, from, to);
  stream.synchronize();
  if (on_host(from, to)) return copy_on_host(from.raw(), to.raw(), to.bytes());
  const Device device = stream.device();
  if (from.device().is_cuda() && to.device().is_cuda()) {
    copy(stream, from, to);
    return stream.synchronize();
  }
  const Tensor pinned = host_tensor(from.shape(), from.dtype(), device);
  if (to.device().is_cuda()) {
    copy_on_host(from.raw(), pinned.raw(), pinned.bytes());
    copy(stream, pinned, to);
    stream.synchronize();
  } else {
    copy(stream, from, pinned);
    stream.synchronize();
    copy_on_host(pinned.raw(), to.raw(), to.bytes());
  }
}

Tensor fetch(const Stream& stream, const Tensor& x) {
  if (!x.device().is_cuda()) {
    stream.synchronize();
    return x;
  }
  const Tensor host = host_tensor(x.shape(), x.dtype(), x.device());
  copy(stream, x, host);
  stream.synchronize();
  return host;
}

void clear(const Stream& stream, const Tensor& x) {
  if (x.device().is_cuda())
    return cuda::fill_bytes(stream.native(), x.raw(), 0, x.bytes());
  stream.submit([at = x.raw(), bytes = x.bytes()] {
    if (bytes > 0) std::memset(at, 0, static_cast<size_t>(bytes));
  });
}

}  // namespace wisp
