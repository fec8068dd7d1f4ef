// State of a rank when another number of workers goes on.
#pragma once

#include <memory>
#include <span>

#include "core/io/checkpoint.h"
#include "core/io/saved_state.h"

namespace wisp {

/// Fills `state.tensor` of rank `rank` of `workers` by its rule from what the ranks before had, a
/// file each. An integer sum that does not divide leaves its rest to rank 0. Throws Error for a
/// dtype that cannot be summed, and for elements of an owner's that no file or several have.
void read_resized(const SavedState& state, std::span<const std::unique_ptr<CheckpointReader>> files,
                  int rank, int workers);

}  // namespace wisp
