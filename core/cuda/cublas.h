// Matrix products by cuBLASLt, on CUDA streams. Belongs to its stream's thread.
#pragma once

#include <memory>
#include <string>

#include "core/base/recently_used.h"
#include "core/products.h"
#include "core/workspace.h"

struct cublasLtContext;

namespace wisp::cuda {

class CublasProducts final : public Products {
 public:
  /// Products for the thread's current device. A factor is rounded to bf16 if the other is bf16, in
  /// memory of `pool`, because the library needs factors of one type. With `tf32`, f32 factors are
  /// rounded to TF32.
  CublasProducts(MemoryPool& pool, Workspace& workspace, bool tf32);
  ~CublasProducts() override;

  void gemm(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
            GradSlot c) override;
  /// Only for a bias of C's type, f32 or bf16.
  bool gemm_bias(const Stream& stream, const GemmSpec& spec, const Tensor& a, const Tensor& b,
                 const Tensor& bias, const Tensor& c) override;
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

  MemoryPool& pool_;
  Workspace& workspace_;
  const bool tf32_;
  // null before the first use: many backends multiply nothing
  std::unique_ptr<cublasLtContext, void (*)(cublasLtContext*)> handle_;
  RecentlyUsed<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace wisp::cuda
