// A launch of replicas for other work than training: evaluation, import, export. One thread calls.
#pragma once

#include <functional>

#include "apps/setup/prepared.h"
#include "apps/setup/replica.h"

namespace wisp {

/// Calls `work` with a fresh replica in each worker that the configuration asks for, without an
/// emulated link. Rethrows the first worker's exception as "rank R: …".
void run_replicas(const Prepared& run, const std::function<void(Replica&)>& work);

}  // namespace wisp
