// The outcome of a step. A value.
#pragma once

namespace wisp {

/// Equal on all ranks: apply the update; skip it; or apply it and end the run, because a rank asked
/// to stop.
enum class Outcome { applied, skipped, stop };

}  // namespace wisp
