// Codes that send some values of each field with their positions. They differ in the selection.
// Immutable; any thread.
#pragma once

#include "compression/code.h"
#include "compression/sparse/pack.h"

namespace wisp {

/// `least_ratio`: least ratio of all steps.
std::unique_ptr<Code> make_sparse_code(SparseWire wire, const Selection& selection,
                                       double least_ratio);

}  // namespace wisp
