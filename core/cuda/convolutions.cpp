#include "core/cuda/convolutions.h"

#include "core/device/device_remarks.h"
#include "core/device/device_work.h"
#include "core/kernels/direct_conv.h"
#include "core/ops/gradient.h"

namespace wisp::cuda {

void Convolutions::convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec,
                            const Tensor& first, const Tensor& second, const GradSlot& result) {
  const DType type = first.dtype();
  if (type == DType::f64) return direct_convolve(stream, pass, spec, first, second, result);
  const Tensor factor = in_type(type, second, stream, pool_);
  if (run_as_is(stream, pass, spec, math_.tf32, first, factor, result)) return;
  WISP_CHECK(type == DType::bf16, cudnn_.refusal());
  remark(cudnn_.refusal() + "; it runs in f32, which is several times slower");
  count_device_work({.fallbacks = 1});
  const bool tf32 = true;  // exact, because a factor in bf16 has fewer bits than one in TF32
  const bool done = run_as_is(stream, pass, spec, tf32, in_type(DType::f32, first, stream, pool_),
                              in_type(DType::f32, factor, stream, pool_), result);
  WISP_CHECK(done, cudnn_.refusal());
}

/// Runs in the type of the factors. Where the result has another type, or cuDNN cannot add to it,
/// the convolution goes to a temporary. Returns false if cuDNN lacks it; then nothing was done.
bool Convolutions::run_as_is(const Stream& stream, ConvPass pass, const ConvSpec& spec, bool tf32,
                             const Tensor& first, const Tensor& second, const GradSlot& result) {
  // cuDNN's classic interface gives results in the factors' type; its graphs could give f32
  if (result.into.dtype() == first.dtype()) {
    if (cudnn_.run(stream, pass, spec, tf32, first, second, result)) return true;
    if (!result.accumulate) return false;
  }
  const Tensor sums(result.into.shape(), first.dtype(), pool_, stream.id());
  if (!cudnn_.run(stream, pass, spec, tf32, first, second, {sums, false})) return false;
  deposit(stream, sums, result);
  return true;
}

}  // namespace wisp::cuda
