// Matrix products.
#pragma once

#include <cstdint>

namespace wisp {

/// C (m, n) = op(A) (m, k) · op(B) (k, n), row-major. A transposed A is stored as (k, m), a
/// transposed B as (n, k). If A is bf16, B and C may each be bf16 or f32.
struct GemmSpec {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool operator==(const GemmSpec&) const = default;
};

}  // namespace wisp
