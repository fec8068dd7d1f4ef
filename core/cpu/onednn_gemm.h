// Matrix products in bf16 as oneDNN computes them; f32 has its sgemm.
#pragma once

#include "core/backend.h"
#include "core/cpu/onednn_op.h"

namespace wisp {

/// The matrices' own types, f32 or bf16; a and b are multiplied in bf16.
struct GemmTypes {
  DType a, b, c;
  bool operator==(const GemmTypes&) const = default;
};

/// c from (a, b). Throws dnnl::error if the library has no implementation.
OnednnOp make_bf16_gemm(const dnnl::engine& engine, const GemmSpec& spec, const GemmTypes& types);

}  // namespace wisp
