// Convolutions as oneDNN computes them.
#pragma once

#include "core/backend.h"
#include "core/cpu/onednn_op.h"

namespace wisp {

enum class ConvPass { forward, dx, dw };

/// forward: y from (x, w); dx: from (dy, w); dw: from (x, dy). Images are f32 or bf16, weights and
/// their gradients f32. The results of several ops add up. Throws dnnl::error if the library has no
/// implementation.
std::vector<OnednnOp> make_conv(const dnnl::engine& engine, ConvPass pass, const ConvSpec& spec,
                                DType images);

}  // namespace wisp
