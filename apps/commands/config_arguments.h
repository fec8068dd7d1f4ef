// The positional arguments of subcommands that take a config. One thread.
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

  /// Returns the option of the file. This object must outlive `command`.
  CLI::Option& add_to(CLI::App& command);
  /// Reads the file and the overrides. A data set that is read from a folder takes the folder from
  /// WISP_DATA unless data.path is given.
  Config load() const;
  /// The file's configuration, bound and checked; prints its notices on stderr.
  Prepared prepare() const;
  /// The file's name without folder and extension.
  std::string stem() const;
};

}  // namespace wisp
