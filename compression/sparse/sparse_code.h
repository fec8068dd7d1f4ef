// Codes that send some values of each field with their positions. They differ in the selection.
// Immutable; any thread.
#pragma once

#include "compression/code.h"
#include "compression/sparse/select.h"

namespace wisp {

/// Binds compression.selection: exact or sampled.
Selection bind_selection(Config& config);

/// Binds the ratio, its warm-up, and the formats of values and positions.
std::unique_ptr<Code> make_sparse_code(Config& config, const Selection& selection);

}  // namespace wisp
