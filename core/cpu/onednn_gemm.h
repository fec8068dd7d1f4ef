// Matrix products in bf16 by oneDNN; f32 uses its sgemm. Each is made and used by one thread.
#pragma once

#include "core/cpu/onednn_op.h"
#include "core/products.h"

namespace wisp {

/// C from (A, B). A is bf16; `b` and `c` are the types of B and C; B is multiplied as bf16. Throws
/// dnnl::error if the library has no implementation.
OnednnOp make_bf16_gemm(const dnnl::engine& engine, const GemmSpec& spec, DType b, DType c);

}  // namespace wisp
