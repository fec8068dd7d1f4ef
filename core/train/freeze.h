// Which parameters of a model are trained.
#pragma once

#include <span>

#include "core/io/config.h"
#include "core/parameter.h"

namespace wisp {

/// Binds train.freeze, a list of glob patterns, and marks the parameters whose names fit one. Call
/// before FlatParameters takes them. Throws Error with file:line for a pattern that fits no name,
/// with the nearest names, and if nothing is left to train.
void freeze(Config& config, std::span<Parameter* const> parameters);

}  // namespace wisp
