// Keys that several methods have in common.
#pragma once

#include "core/io/config.h"
#include "core/tensor/dtype.h"

namespace wisp {

/// compression.values of a method whose payloads can be summed: f32, f16 or bf16.
DType bind_summed_values(Config& config);

/// compression.sharing: whether all ranks send the same positions, so that values are summed on the
/// way; else each sends its own, and payloads are gathered.
bool bind_shared(Config& config, bool by_default);

}  // namespace wisp
