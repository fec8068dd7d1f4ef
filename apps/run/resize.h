// The conversion of a rank's saved state for another number of workers. Any thread.
#pragma once

#include <memory>
#include <span>

#include "core/io/checkpoint.h"
#include "core/io/saved_state.h"

namespace wisp {

/// Fills `state.tensor` of rank `rank` of `workers` by the state's rule, from `files`, one for each
/// earlier rank. Rank 0 gets the remainder of an integer sum. Throws Error for a dtype that cannot
/// be summed, and for elements of a partitioned state that are in no file or in several.
void read_resized(const SavedState& state, std::span<const std::unique_ptr<CheckpointReader>> files,
                  int rank, int workers);

}  // namespace wisp
