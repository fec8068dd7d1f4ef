// A dense start: updates before a method's first, after which its units are compressed for good.
#pragma once

#include <cstdint>

#include "core/io/config.h"

namespace wisp {

/// Binds compression.start_after and returns it: Compressor::started() from that update on.
int64_t bind_start_after(Config& config, int64_t published = 0);

}  // namespace wisp
