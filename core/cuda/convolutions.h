// Convolutions on CUDA devices in f32 and bf16: cuDNN's, and ways around the ones that it lacks.
// Belongs to its stream's thread.
#pragma once

#include "core/cuda/cudnn.h"

namespace wisp::cuda {

class Convolutions {
 public:
  /// Convolutions on the stream with that id. Temporaries come from `pool`, the library's workspace
  /// is `workspace`.
  Convolutions(MemoryPool& pool, int64_t stream_id, Workspace& workspace, const GpuMath& math)
      : pool_(pool), stream_id_(stream_id), math_(math), cudnn_(workspace, math.deterministic) {}

  /// Forward computes y from (x, w), dx from (dy, w), dw from (x, dy). The two factors are both f32
  /// or both bf16; the result may have either type. A convolution that cuDNN lacks in bf16 runs in
  /// f32, which is counted (DeviceWork) and remarked upon (device_remarks.h). Throws Error with the
  /// shapes if cuDNN lacks it in f32, too.
  void run(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
           const Tensor& second, const GradSlot& result);
  int64_t kept_objects() const { return cudnn_.kept_objects(); }

 private:
  bool run_as_is(const Stream& stream, ConvPass pass, const ConvSpec& spec, bool tf32,
                 const Tensor& first, const Tensor& second, const GradSlot& result);
  Tensor temporary(Shape shape, DType dtype) const { return {shape, dtype, pool_, stream_id_}; }
  Tensor widened(const Stream& stream, const Tensor& x) const;

  MemoryPool& pool_;
  const int64_t stream_id_;
  const GpuMath math_;
  CudnnConvolutions cudnn_;
};

}  // namespace wisp::cuda
