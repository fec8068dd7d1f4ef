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
  /// For the thread's current device.
  CudnnConvolutions(Workspace& workspace, const GpuMath& math);
  ~CudnnConvolutions();

  /// forward: y from (x, w); dx: from (dy, w); dw: from (x, dy). All three are f32 or all bf16,
  /// added in f32: cuDNN has no f64 with channels last. False, and nothing is done, if it has no
  /// algorithm in bf16 (that gives the same bits each time, where that is asked for); in f32 that
  /// is an Error with the shapes.
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

/// cuDNN opens its parts when it first needs them. The first that cannot be opened, and why; empty
/// if all can.
std::string missing_cudnn_part();

}  // namespace wisp::cuda
