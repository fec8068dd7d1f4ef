// A file of a model's outputs for every sample of the test set, for comparison in other programs.
// One thread.
#pragma once

#include <string>

#include "apps/inference/inference.h"
#include "apps/setup/prepared.h"

namespace wisp {

/// Throws Error, which begins with `option`, for a model whose inputs differ in length, as
/// utterances do: its output has no row for each target.
void check_predictions(const Facts& facts, const std::string& option);

/// Writes a safetensors file, batch by batch. It holds the inputs under their names in the facts,
/// images as (N, C, H, W), in the type that the model computes in; "labels", the targets, i32; and
/// "logits", a row of the output for each target. Rows are in the order of the batches, which for
/// images is the order of the test set. Throws Error for a model whose output does not have one row
/// per target, and for batches that differ in more than their first extent.
void write_predictions(const std::string& path, const Prepared& run, Inference& model);

}  // namespace wisp
