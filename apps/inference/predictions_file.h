// A file of a model's outputs for every sample of the test set, for other programs to compare with.
#pragma once

#include <string>

#include "apps/inference/inference.h"
#include "apps/setup/prepared.h"

namespace wisp {

/// Throws Error for a model whose inputs are of different lengths, as utterances are: they have no
/// row for each target. `option` asked for the file.
void check_predictions(const Facts& facts, const std::string& option);

/// Writes a safetensors file, batch by batch: the inputs under the names that the facts give them,
/// images as (N, C, H, W), in the type that the model computes in; "labels", the targets, i32; and
/// "logits", a row of the output for each target. The rows are in the order of the batches, which
/// for images is that of the test set. Throws Error for a model whose output has not a row for each
/// target, and for batches that differ in more than their first extent.
void write_predictions(const std::string& path, const Prepared& run, Inference& model);

}  // namespace wisp
