// Codes that send some values of each field and their positions; they differ by the selection.
#pragma once

#include "compression/code.h"
#include "compression/sparse/select.h"

namespace wisp {

/// Binds compression.selection: exact or sampled.
Selection bind_selection(Config& config);

/// Binds the ratio and its warm-up, and the formats of values and positions.
std::unique_ptr<Code> make_sparse_code(Config& config, const Selection& selection);

}  // namespace wisp
