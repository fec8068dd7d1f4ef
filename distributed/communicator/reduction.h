// The arithmetic of reductions, one for all communicators on the host: what makes threads and
// processes give the same bits.
#pragma once

#include <span>

#include "compression/compressor.h"  // ReduceOp

namespace wisp {

/// into[i] = op over sources, in their order, of source[i], for n elements. f16 and bf16 are summed
/// in f32 and rounded once; integer sums wrap; max keeps a NaN. `into` may be one of the sources.
void reduce_elements(std::span<const std::byte* const> sources, std::byte* into, int64_t n,
                     DType dtype, ReduceOp op);

}  // namespace wisp
