// Convolutions by cuDNN, on CUDA streams. Belongs to its stream's thread.
#pragma once

#include <memory>
#include <string>

#include "core/base/recently_used.h"
#include "core/convolutions.h"
#include "core/workspace.h"

struct cudnnContext;

namespace wisp::cuda {

class CudnnConvolutions {
 public:
  /// `deterministic` leaves out algorithms whose bits may vary.
  CudnnConvolutions(Workspace& workspace, bool deterministic);
  ~CudnnConvolutions();

  /// All three tensors are f32 or all are bf16, and sums are f32; cuDNN has no f64 with channels
  /// last. With `tf32`, f32 factors are rounded to TF32. If cuDNN has no suitable algorithm,
  /// nothing is done and the result is false. Throws OutOfMemory if the library lacks memory, Error
  /// with the shapes if it fails otherwise.
  bool run(const Stream& stream, ConvPass pass, const ConvSpec& spec, bool tf32,
           const Tensor& first, const Tensor& second, const GradSlot& result);
  /// The shapes of the last convolution that was not done, and the reason.
  const std::string& refusal() const { return refusal_; }
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

  cudnnContext* handle(const Stream& stream);

  Workspace& workspace_;
  const bool deterministic_;
  std::unique_ptr<cudnnContext, void (*)(cudnnContext*)> handle_;  // null before the first use
  RecentlyUsed<Key, std::unique_ptr<Plan>> plans_;
  std::string refusal_;
};

/// The first part of cuDNN that cannot be opened, with the reason; empty if all can. cuDNN itself
/// opens its parts only on first use.
std::string missing_cudnn_part();

}  // namespace wisp::cuda
