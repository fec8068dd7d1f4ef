// The check that all processes of a run see one run directory. Each rank writes its own part of a
// checkpoint there, and apart they would train to the first checkpoint before anybody noticed.
#pragma once

#include "apps/run/run_directory.h"
#include "apps/setup/train_options.h"

namespace wisp {

/// Throws Error on every process, with the ranks, hosts and paths, unless all see the directory
/// that rank 0 has made. Leaves nothing there. Collective among processes.
void check_shared_folder(const TrainOptions& options, const RunDirectory& directory);

}  // namespace wisp
