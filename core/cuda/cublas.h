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
  /// Products for the thread's current device. With `tf32`, f32 factors are rounded to TF32.
  CublasProducts(Workspace& workspace, bool tf32);
  ~CublasProducts();

  /// Backend::gemm for factors of one type: f32, f64, or bf16 with C in bf16 or f32.
  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            const GradSlot& c);
  /// Backend::gemm_bias for a bias of C's type, f32 or bf16.
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

  /// Returns false if the library has no algorithm for the product.
  bool multiply(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
                const Tensor* bias, const GradSlot& c);

  Workspace& workspace_;
  const bool tf32_;
  // null before the first use: many backends multiply nothing
  std::unique_ptr<cublasLtContext, void (*)(cublasLtContext*)> handle_;
  RecentlyUsed<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace wisp::cuda
