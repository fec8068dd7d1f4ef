// A model's weights as other programs have them: a safetensors file in PyTorch's layouts, under the
// model's exchange names, with the running statistics and without the state of a training run.
#pragma once

#include <string>
#include <vector>

#include "apps/setup/prepared.h"
#include "core/parameter.h"
#include "models/model.h"

namespace wisp {

/// Writes the file, with a hash of the classes' names, if they have any. Each norm gets the
/// num_batches_tracked, 0, that PyTorch's strict loading asks for.
void write_weights(const std::string& path, const Model& model, const FlatParameters& parameters,
                   const Facts& facts);

/// Throws Error that lists what in the file is missing, unexpected, or of another shape or a type
/// that is no float, for the model that was configured. Of a tensor that has several names one is
/// enough. A last layer for another number of classes
/// is none of these: its tensors, which differ in their first extent alone, are returned. As many
/// classes of other names are an error, if the file says so.
std::vector<std::string> check_weights(const std::string& path, const Prepared& run);

/// Reads all that check_weights() did not return; f16, bf16, f32 and f64 are converted. `stream` is
/// one of the parameters' device.
void read_weights(const Stream& stream, const std::string& path, const Model& model,
                  const FlatParameters& parameters, const Facts& facts);

}  // namespace wisp
