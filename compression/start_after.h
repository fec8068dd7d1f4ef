// A dense start: the number of updates before a method begins. From then on, its units are
// compressed.
#pragma once

#include <cstdint>

#include "core/io/config.h"

namespace wisp {

/// Binds compression.start_after and returns it: the first update with Compressor::started().
int64_t bind_start_after(Config& config, int64_t published = 0);
/// Throws Error if it is negative, with the key's place in `places`.
void check_start_after(int64_t updates, const Config& places);

}  // namespace wisp
