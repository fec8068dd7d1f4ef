// Matrix products by cuBLASLt, on CUDA streams. Belongs to its stream's thread.
#pragma once

#include <memory>
#include <string>

#include "core/backend.h"
#include "core/base/recently_used.h"
#include "core/cuda/workspace.h"

struct cublasLtContext;

namespace wisp::cuda {

class CublasProducts {
 public:
  /// For the thread's current device. `tf32`: f32 factors are rounded to TF32.
  CublasProducts(Workspace& workspace, bool tf32);
  ~CublasProducts();

  /// As Backend::gemm, of factors of one type: f32, f64, or bf16 with C in bf16 or f32.
  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            const GradSlot& c);
  /// As Backend::gemm_bias, of a bias of C's type, f32 or bf16.
  bool gemm_bias(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
                 const Tensor& bias, const Tensor& c);
  static std::string version();

 private:
  struct Key {
    GemmSpec spec;
    DType factors, product;
    uint32_t a_alignment, b_alignment, c_alignment;  // bytes
    bool bias;
    bool operator==(const Key&) const = default;
  };
  class Plan;

  /// False if the library has no algorithm for it.
  bool multiply(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
                const Tensor* bias, const GradSlot& c);

  Workspace& workspace_;
  const bool tf32_;
  std::unique_ptr<cublasLtContext, void (*)(cublasLtContext*)> handle_;
  RecentlyUsed<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace wisp::cuda
