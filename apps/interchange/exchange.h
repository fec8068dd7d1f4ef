// Runs from and to the files of other programs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "apps/run/run_directory.h"
#include "core/io/config.h"

namespace wisp {

/// Makes a run directory whose checkpoint, before the first step, holds the weights of `file` in
/// the model that `config` describes. Throws Error, before anything is written, if the file holds
/// other tensors than the model.
void import_run(Config config, const std::string& file, const std::string& out,
                RunDirectory::Open open);

/// Writes the model of a run's checkpoint ("last", "best" or a step) to `path`, which ends in
/// .safetensors (weights) or .onnx (weights and graph), with rank 0's running statistics, or the
/// averages that evaluation takes. Reads no data set. Throws Error for another ending, and for a
/// model with an op that ONNX has no form for. Returns what a person should know of the checkpoint.
std::vector<std::string> export_run(const std::string& run, const std::string& path,
                                    std::span<const std::string> overrides,
                                    const std::string& checkpoint = "last");

}  // namespace wisp
