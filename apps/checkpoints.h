// A replica's state on disk: RUN/checkpoint with one file for what all ranks share and one per
// rank.
#pragma once

#include <string>

#include "apps/replica.h"

namespace wisp {

/// Where a run stands.
struct Position {
  int64_t epoch = 0;     // completed
  int64_t in_epoch = 0;  // steps done of the epoch under way
  int64_t step = 0;      // of the run
  int64_t skipped = 0;
};

/// Saves all ranks' state as one set, replacing the checkpoint before. Collective: all workers call
/// it between steps.
void save_checkpoint(const std::string& directory, Replica& replica, int workers,
                     const Position& position);

/// Loads this rank's state; returns when all ranks have. Collective. Throws Error for a checkpoint
/// of another model, method or number of workers (whose momentum and residuals mean something
/// else), or damaged.
Position load_checkpoint(const std::string& directory, Replica& replica, int workers);

}  // namespace wisp
