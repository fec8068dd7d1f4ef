// Tasks on tensors of f32 or bf16, the types of the CPU's own loops. Called by the stream's
// thread.
#pragma once

#include "core/device/stream.h"
#include "core/tensor/tensor.h"

namespace wisp {

/// Submits loop(T{}), where T is the element type of `like`; f64 must have been handled before.
template <class Loop>
void submit_narrow(const Stream& stream, const Tensor& like, Loop loop) {
  if (like.dtype() == DType::bf16) return stream.submit([loop] { loop(BFloat16{}); });
  stream.submit([loop] { loop(float{}); });
}

}  // namespace wisp
