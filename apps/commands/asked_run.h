// The arguments of the commands that ask a trained run's model: wisp predict, generate, score,
// transcribe, tune-lm.
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

  /// Before the command's own: the run is the first positional argument. Keys to change follow it,
  /// and the files that the command reads, if `read` says what they are, in any order.
  void add_to(CLI::App& command, const std::string& read = "");
  /// What a person should know of the checkpoint goes to stderr. Throws Error without a file where
  /// there should be one.
  std::unique_ptr<Inference> open();

 private:
  bool reads_files_ = false;
};

/// Whether an argument is KEY=VALUE and no file: "a.b=1" is, unless there is such a file;
/// "./a.b=1" is none.
bool changes_a_key(const std::string& argument);

}  // namespace wisp
