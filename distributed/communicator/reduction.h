// The arithmetic of reductions in host memory, shared by threads and processes, which therefore
// give the same bits. Any thread.
#pragma once

#include <span>

#include "compression/message.h"

namespace wisp {

/// into[i] = op over source[i] of all sources, in their order, for n elements. f16 and bf16 are
/// summed in f32 and rounded once; integer sums wrap; max keeps a NaN. `into` may be one of the
/// sources.
void reduce_elements(std::span<const std::byte* const> sources, std::byte* into, int64_t n,
                     DType dtype, ReduceOp op);

}  // namespace wisp
