// Matrix products in bf16 as oneDNN computes them; f32 has its sgemm.
#pragma once

#include "core/backend.h"
#include "core/cpu/onednn_op.h"

namespace wisp {

/// C from (A, B): A is bf16, the types of B and C are told; B is multiplied as bf16. Throws
/// dnnl::error if the library has no implementation.
OnednnOp make_bf16_gemm(const dnnl::engine& engine, const GemmSpec& spec, DType b, DType c);

}  // namespace wisp
