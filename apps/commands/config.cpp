#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/prepared.h"

namespace wisp {

void add_config(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("config", "check a config and print it resolved");
  const auto arguments = std::make_shared<ConfigArguments>();
  arguments->add_to(command);
  command.callback(
      [arguments] { fmt::print("{}", Prepared(arguments->load()).config().resolved()); });
}

}  // namespace wisp
