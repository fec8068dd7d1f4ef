// The outcome of a step. A value.
#pragma once

namespace wisp {

/// Equal on all ranks. stop: apply the update and end the run, because a rank asked to stop.
enum class Outcome { applied, skipped, stop };

}  // namespace wisp
