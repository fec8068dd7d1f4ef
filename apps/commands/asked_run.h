// The common arguments of commands that use a trained run's model: wisp predict, generate, score,
// transcribe, tune-lm. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "apps/inference/inference.h"

namespace wisp {

struct AskedRun {
  std::string path;
  std::vector<std::string> files;
  std::vector<std::string> overrides;
  std::string checkpoint = "last";
  bool json = false;

  /// Adds the arguments; call before the command adds its own. The run is the first positional
  /// argument. Then come keys to change and, if `read` names them, the files to read, in any order.
  void add_to(CLI::App& command, const std::string& read = "");
  /// Opens the model, with its notices on stderr. Throws Error if files are expected and none is
  /// given.
  std::unique_ptr<Inference> open();

 private:
  bool reads_files_ = false;
};

}  // namespace wisp
