// Import and export of runs in file formats of other programs. One thread.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/run/run_directory.h"
#include "core/io/config.h"

namespace wisp {

/// Makes a run directory with a checkpoint before the first step, which holds the weights of `file`
/// in the model that `config` describes. Throws Error, before anything is written, if the file and
/// the model have different tensors.
void import_run(Config config, const std::string& file, const std::string& out,
                RunDirectory::Open open);

/// Writes the model of a run's checkpoint ("last", "best" or a step) to `path`: weights if it ends
/// in .safetensors, weights and graph if it ends in .onnx. Weights and running statistics are those
/// of evaluation. Reads no data set. Returns notes for the user on the checkpoint. Throws Error for
/// another ending, and for a model with an op that has no ONNX form.
std::vector<std::string> export_run(const std::string& run, const std::string& path,
                                    std::span<const std::string> overrides,
                                    const std::string& checkpoint = "last");

}  // namespace wisp
