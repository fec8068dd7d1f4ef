// The exchange of a model's weights with other programs: a safetensors file in PyTorch's layouts,
// under the model's exchange names, with running statistics and without training state. One thread.
#pragma once

#include <string>
#include <vector>

#include "apps/setup/prepared.h"
#include "core/parameter.h"
#include "models/model.h"

namespace wisp {

/// Writes the file, with a hash of the classes' names if they have any. Each norm also gets
/// num_batches_tracked = 0, which PyTorch's strict loading asks for.
void write_weights(const std::string& path, const Model& model, const FlatParameters& parameters,
                   const Facts& facts);

/// Compares the file with the configured model. Throws Error that lists tensors which are missing,
/// unexpected, or of another shape or a type that is not float. A tensor with several names needs
/// only one of them. A last layer for another number of classes is no error: its tensors, which
/// differ in the first extent alone, are returned. The same number of classes with other names is
/// an error, if the file has their hash. So are values that are not finite, or not in the type of
/// the run's weights, and negative running variances.
std::vector<std::string> check_weights(const std::string& path, const Prepared& run);

/// Reads all tensors that check_weights() did not return. Converts f16, bf16, f32 and f64. `stream`
/// is on the parameters' device. Throws Error as check_weights().
void read_weights(const Stream& stream, const std::string& path, const Model& model,
                  const FlatParameters& parameters, const Facts& facts);

}  // namespace wisp
