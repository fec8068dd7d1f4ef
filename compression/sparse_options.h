// Options that several sparse methods share, and their configuration keys.
#pragma once

#include "core/io/config.h"
#include "core/tensor/dtype.h"

namespace wisp {

/// Formats of a list's positions in a payload.
enum class Indices { shortest, runs16, u32, gamma, bitmap };

/// Binds compression.values of a method whose payloads can be summed: f32, f16 or bf16.
DType bind_summed_values(Config& config);
/// Throws Error for any other format.
void check_summed_values(DType values);

/// Throws Error for a ratio that no schedule has.
void check_least_ratio(double least_ratio);

/// Binds compression.sharing and returns whether all ranks send the same positions. If so, values
/// are summed on the way; otherwise each rank sends its own positions, and payloads are gathered.
bool bind_shared(Config& config, bool by_default);

}  // namespace wisp
