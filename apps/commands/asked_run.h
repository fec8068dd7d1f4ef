// What commands share that ask a trained run's model: wisp predict, generate, score.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/inference/inference.h"

namespace wisp {

struct AskedRun {
  std::string path;
  std::vector<std::string> overrides;
  std::string checkpoint = "last";
  bool json = false;

  /// Before the command's own: the run is the first positional argument.
  void add_to(CLI::App& command);
  /// What a person should know of the checkpoint goes to stderr.
  std::unique_ptr<Inference> open() const;
};

}  // namespace wisp
