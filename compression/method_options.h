// Options that several methods share, and their configuration keys.
#pragma once

#include "compression/wire_value.h"
#include "core/io/config.h"
#include "core/tensor/dtype.h"

namespace wisp {

/// Formats of a list's positions in a payload.
enum class Indices { shortest, runs16, u32, gamma, bitmap };

/// Binds compression.start_after and returns it: the first update with Compressor::started().
int64_t bind_start_after(Config& config, int64_t published = 0);
/// Throws Error if it is negative, with the key's place in `places`.
void check_start_after(int64_t updates, const Config& places);

/// Binds compression.selection. Returns whether it is sampled, not exact.
bool bind_sampled(Config& config);
/// Binds compression.values.
WireFormat bind_values(Config& config);
/// Binds compression.indices.
Indices bind_indices(Config& config);

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
