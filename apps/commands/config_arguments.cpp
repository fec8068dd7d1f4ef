#include "apps/commands/config_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/io/input_file.h"
#include "core/io/output_streams.h"
#include "core/io/toml_limits.h"
#include "core/io/toml_text.h"
#include "data/data_source.h"
#include "distributed/launch.h"

namespace wisp {
namespace {

/// Whether the configured data set is read from a folder.
bool takes_path(Config config) {
  make_data_source(config);
  return std::ranges::count(config.keys(), "data.path", &ConfigKey::name) > 0;
}

/// Reads the file that a user gives, which may be a pipe, and the overrides.
Config load_given(const std::string& path, const std::vector<std::string>& overrides) {
  std::error_code ignored;  // reading the file reports it
  if (std::filesystem::is_regular_file(path, ignored)) return Config::load(path, overrides);
  const std::string text =
      naming(path, [&] { return read_whole_file(path, kMostConfigBytes, Input::file_or_pipe); });
  return Config::from_text(text, path, overrides);
}

}  // namespace

CLI::Option& ConfigArguments::add_to(CLI::App& command) {
  CLI::Option& file = *command.add_option("config", path, "TOML file");
  file.required()->check(CLI::ExistingFile);
  command.add_option("overrides", overrides, "keys to change: optimizer.lr=0.05 workers=4");
  return file;
}

Config ConfigArguments::load() const {
  Config config = load_given(path, overrides);
  const std::string data = environment("WISP_DATA");
  if (!data.empty() && !config.given("data.path") && takes_path(config))
    config.set("data.path", to_toml(data));
  return config;
}

Prepared ConfigArguments::prepare() const {
  Prepared prepared(load());
  for (const std::string& notice : prepared.notices()) write_notice(notice);
  return prepared;
}

std::string ConfigArguments::stem() const { return std::filesystem::path(path).stem().string(); }

}  // namespace wisp
