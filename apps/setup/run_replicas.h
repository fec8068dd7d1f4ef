// Replicas for other work than training: evaluation, import, export.
#pragma once

#include <functional>

#include "apps/setup/prepared.h"
#include "apps/setup/replica.h"

namespace wisp {

/// Calls `work` with a fresh replica in each worker that the configuration asks for, without an
/// emulated link. Throws what the first worker threw, as "rank R: …".
void run_replicas(const Prepared& run, const std::function<void(Replica&)>& work);

}  // namespace wisp
