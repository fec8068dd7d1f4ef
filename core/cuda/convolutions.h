// Convolutions on CUDA devices: cuDNN's in f32 and bf16, with ways around the ones that it lacks,
// and our own in f64. Weights are rounded to the type of images in bf16. Belongs to its stream's
// thread.
#pragma once

#include <memory>
#include <string>

#include "core/backend.h"
#include "core/base/recently_used.h"
#include "core/convolutions.h"
#include "core/workspace.h"

struct cudnnContext;

namespace wisp::cuda {

class Convolutions final : public wisp::Convolutions {
 public:
  /// Temporaries come from `pool`, the library's workspace is `workspace`.
  Convolutions(MemoryPool& pool, Workspace& workspace, const GpuMath& math);
  ~Convolutions() override;

  /// The result may be f32 beside bf16, and the other way round. A convolution that cuDNN lacks in
  /// bf16 runs in f32, which is counted (DeviceWork) and remarked upon (device_remarks.h). Throws
  /// Error with the shapes if cuDNN lacks it in f32, too.
  void convolve(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
                const Tensor& second, const GradSlot& result) override;
  int64_t kept_objects() const { return plans_.size(); }
  static std::string version();

 private:
  struct Key {
    ConvPass pass;
    ConvSpec spec;
    DType dtype;
    bool tf32;
    bool operator==(const Key&) const = default;
  };
  class Plan;

  bool run_as_is(const Stream& stream, ConvPass pass, const ConvSpec& spec, bool tf32,
                 const Tensor& first, const Tensor& second, const GradSlot& result);
  bool run_by_cudnn(const Stream& stream, ConvPass pass, const ConvSpec& spec, bool tf32,
                    const Tensor& first, const Tensor& second, const GradSlot& result);
  cudnnContext* handle(const Stream& stream);

  MemoryPool& pool_;
  Workspace& workspace_;
  const GpuMath math_;
  std::unique_ptr<cudnnContext, void (*)(cudnnContext*)> handle_;  // null before the first use
  RecentlyUsed<Key, std::unique_ptr<Plan>> plans_;
  std::string refusal_;  // the last convolution that cuDNN lacked, and the reason
};

/// The first part of cuDNN that cannot be opened, with the reason; empty if all can. cuDNN itself
/// opens its parts only on first use.
std::string missing_cudnn_part();

}  // namespace wisp::cuda
