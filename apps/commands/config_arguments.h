// The positional arguments of the subcommands that take a config.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "apps/setup/prepared.h"
#include "core/io/config.h"

namespace wisp {

struct ConfigArguments {
  std::string path;
  std::vector<std::string> overrides;

  /// Returns the file's option. The arguments must live as long as `command`.
  CLI::Option& add_to(CLI::App& command);
  /// Reads the file. A data set that is read from a folder takes it from the environment's
  /// WISP_DATA unless data.path is given.
  Config load() const;
  /// The file's configuration, made ready to run; its notices go to standard error.
  Prepared prepare() const;
  /// The file's name without folder and ending.
  std::string stem() const;
};

}  // namespace wisp
