#include "apps/commands/config_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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

}  // namespace

CLI::Option& ConfigArguments::add_to(CLI::App& command) {
  CLI::Option& file = *command.add_option("config", path, "TOML file");
  file.required()->check(CLI::ExistingFile);
  command.add_option("overrides", overrides, "keys to change: optimizer.lr=0.05 workers=4");
  return file;
}

Config ConfigArguments::load() const {
  Config config = Config::load(path, overrides);
  const std::string data = environment("WISP_DATA");
  if (!data.empty() && !config.given("data.path") && takes_path(config))
    config.set("data.path", to_toml(data));
  return config;
}

Prepared ConfigArguments::prepare() const {
  Prepared prepared(load());
  for (const std::string& notice : prepared.notices()) fmt::print(stderr, "wisp: {}\n", notice);
  return prepared;
}

std::string ConfigArguments::stem() const { return std::filesystem::path(path).stem().string(); }

}  // namespace wisp
