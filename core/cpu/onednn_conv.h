// Convolutions by oneDNN. Each is made and used by one thread.
#pragma once

#include "core/convolutions.h"
#include "core/cpu/onednn_op.h"

namespace wisp {

/// The ops of a convolution, whose results add up. Images are f32 or bf16, weights and their
/// gradients f32. Throws dnnl::error if the library has no implementation.
std::vector<OnednnOp> make_conv(const dnnl::engine& engine, ConvPass pass, const ConvSpec& spec,
                                DType images);

}  // namespace wisp
