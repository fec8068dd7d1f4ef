// What a model says about every sample of the test set, for other programs to compare with.
#pragma once

#include <string>

#include "apps/setup/prepared.h"
#include "apps/setup/replica.h"

namespace wisp {

/// Writes a safetensors file: "input" (N, C, H, W), what the loader hands to the model, in the type
/// that it computes in; "labels" (N) i32; "logits" (N, classes), of this replica in evaluation
/// mode. Order of the test set. Holds all of it in memory. Throws Error for data that is no images.
void write_predictions(const std::string& path, const Prepared& run, Replica& replica);

}  // namespace wisp
