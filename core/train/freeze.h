// The choice of a model's frozen parameters. One thread at a time per model.
#pragma once

#include <span>

#include "core/io/config.h"
#include "core/parameter.h"

namespace wisp {

/// Binds train.freeze, a list of glob patterns, and marks the parameters whose names match one.
/// Call it before FlatParameters takes the parameters. Throws Error with file:line if a pattern
/// matches no name, with the nearest names, or if nothing is left to train.
void freeze(Config& config, std::span<Parameter* const> parameters);

}  // namespace wisp
