// Matrix products, and the backend's object for them (core/backend.h).
#pragma once

#include "core/autograd.h"

namespace wisp {

/// C (m, n) = op(A) (m, k) · op(B) (k, n), row-major. A transposed A is stored as (k, m), a
/// transposed B as (n, k). If A is bf16, B and C may each be bf16 or f32.
struct GemmSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool operator==(const GemmSpec&) const = default;
};

class Products {
 public:
  virtual ~Products() = default;
  /// Writes op(A) · op(B) to C, or adds it.
  virtual void gemm(const Stream&, const GemmSpec&, const Tensor& a, const Tensor& b,
                    GradSlot c) = 0;
  /// gemm() into a new C, with `bias` (n) added to each row before C is rounded, which saves a pass
  /// over C. Returns false and does nothing if the library has no such product.
  virtual bool gemm_bias(const Stream&, const GemmSpec&, const Tensor& /*a*/, const Tensor& /*b*/,
                         const Tensor& /*bias*/, const Tensor& /*c*/) {
    return false;
  }
};

}  // namespace wisp
