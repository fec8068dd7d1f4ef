// Convolutions by cuDNN, on CUDA streams. Belongs to its stream's thread.
#pragma once

#include <memory>
#include <string>

#include "core/backend.h"
#include "core/base/recently_used.h"
#include "core/cuda/workspace.h"

struct cudnnContext;

namespace wisp::cuda {

enum class ConvPass { forward, dx, dw };

class CudnnConvolutions {
 public:
  /// Convolutions for the thread's current device.
  CudnnConvolutions(Workspace& workspace, const GpuMath& math);
  ~CudnnConvolutions();

  /// Forward computes y from (x, w), dx from (dy, w), dw from (x, dy). All three tensors are f32 or
  /// all are bf16, and sums are f32; cuDNN has no f64 with channels last. If cuDNN has no suitable
  /// algorithm in bf16, nothing is done and the result is false; in f32 this is an Error with the
  /// shapes. An algorithm is suitable if it gives the same bits each time, where the options ask
  /// for that.
  bool run(const Stream& stream, ConvPass pass, const ConvSpec& spec, const Tensor& first,
           const Tensor& second, const GradSlot& result);
  int64_t kept_objects() const { return plans_.size(); }
  static std::string version();

 private:
  struct Key {
    ConvPass pass;
    ConvSpec spec;
    DType dtype;
    bool operator==(const Key&) const = default;
  };
  class Plan;

  Workspace& workspace_;
  const GpuMath math_;
  std::unique_ptr<cudnnContext, void (*)(cudnnContext*)> handle_;
  RecentlyUsed<Key, std::unique_ptr<Plan>> plans_;
};

/// The first part of cuDNN that cannot be opened, with the reason; empty if all can. cuDNN itself
/// opens its parts only on first use.
std::string missing_cudnn_part();

}  // namespace wisp::cuda
