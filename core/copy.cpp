#include "core/copy.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/cuda/memory.h"
#include "core/cuda/stream.h"
#include "core/loops/parallel.h"

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

/// Whether both tensors are on the host.
bool on_host(const Tensor& a, const Tensor& b) {
  return !a.device().is_cuda() && !b.device().is_cuda();
}

void copy_on_host(const std::byte* from, std::byte* to, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

struct SwapBytes {
  std::byte* a;
  std::byte* b;
  WISP_HD void operator()(int64_t i) const {
    const std::byte kept = a[i];
    a[i] = b[i];
    b[i] = kept;
  }
};

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

std::shared_ptr<std::byte> pinned_block(int64_t bytes, Device device) {
  WISP_CHECK(device.is_cuda(), "pinned memory is for copies to and from devices");
  return cuda::make_pinned(std::max<int64_t>(bytes, 1));
}

Tensor host_tensor(Shape shape, DType dtype, Device device) {
  if (!device.is_cuda()) return {shape, dtype};
  const Tensor tensor(shape, dtype, pinned_block(shape.numel() * size_of(dtype), device));
  tensor.clear();
  return tensor;
}

void copy(const Stream& stream, const Tensor& from, const Tensor& to) {
  check(stream, from, to);
  WISP_CHECK(!stream.device().is_cuda() || !on_host(from, to),
             "copy: both tensors are the host's, ", "the stream is of ", stream.device().str());
  if (stream.device().is_cuda())
    return cuda::copy_bytes(stream.native(), from.raw(), to.raw(), to.bytes());
  stream.submit(
      [from = from.raw(), to = to.raw(), bytes = to.bytes()] { copy_on_host(from, to, bytes); });
}

void copy_bytes(const Stream& stream, const std::byte* from, std::byte* to, int64_t bytes) {
  cuda::copy_bytes(stream.native(), from, to, bytes);
}

void copy_now(const Stream& stream, const Tensor& from, const Tensor& to) {
  check(stream, from, to);
  if (!to.device().is_cuda()) return copy_on_host(fetch(stream, from).raw(), to.raw(), to.bytes());
  Tensor source = from;
  if (!from.device().is_cuda()) {
    source = host_tensor(from.shape(), from.dtype(), to.device());
    copy_on_host(from.raw(), source.raw(), source.bytes());
  }
  copy(stream, source, to);
  stream.synchronize();
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
  if (x.device().is_cuda()) return cuda::fill_bytes(stream.native(), x.raw(), 0, x.bytes());
  stream.submit([at = x.raw(), bytes = x.bytes()] {
    if (bytes > 0) std::memset(at, 0, static_cast<size_t>(bytes));
  });
}

void swap_contents(const Stream& stream, const Tensor& a, const Tensor& b) {
  WISP_CHECK(a.bytes() == b.bytes(), "swap: ", a.bytes(), " and ", b.bytes(), " bytes");
  parallel_for(stream, a.bytes(), SwapBytes{a.raw(), b.raw()});
}

}  // namespace wisp
