// Convolutions on CUDA devices: cuDNN's in f32 and bf16, with ways around the ones that it lacks,
// and our own in f64. Weights are rounded to the type of images in bf16. Belongs to its stream's
// thread.
#pragma once

#include "core/backend.h"
#include "core/cuda/cudnn.h"

namespace wisp::cuda {

class Convolutions final : public wisp::Convolutions {
 public:
  /// Temporaries come from `pool`, the library's workspace is `workspace`.
  Convolutions(MemoryPool& pool, Workspace& workspace, const GpuMath& math)
      : pool_(pool), math_(math), cudnn_(workspace, math.deterministic) {}

  /// Beside factors in bf16, the result may be f32. A convolution that cuDNN lacks in bf16 runs in
  /// f32, which is counted (DeviceWork) and remarked upon (device_remarks.h). Throws Error with the
  /// shapes if cuDNN lacks it in f32, too.
  void convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                const Tensor& second, const GradSlot& result) override;
  int64_t kept_objects() const { return cudnn_.kept_objects(); }

 private:
  bool run_as_is(const Stream& stream, ConvPass pass, const ConvSpec& spec, bool tf32,
                 const Tensor& first, const Tensor& second, const GradSlot& result);

  MemoryPool& pool_;
  const GpuMath math_;
  CudnnConvolutions cudnn_;
};

}  // namespace wisp::cuda
