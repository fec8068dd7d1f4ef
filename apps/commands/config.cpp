#include <fmt/format.h>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/reference/config_reference.h"
#include "core/io/output_streams.h"

namespace wisp {
namespace {

struct PrintedConfig {
  ConfigArguments config;
  bool reference = false;
};

void run_config(const PrintedConfig& arguments) {
  if (!arguments.reference && arguments.config.path.empty()) throw CLI::RequiredError("config");
  write_out(arguments.reference ? config_reference()
                                : arguments.config.prepare().config().resolved());
}

}  // namespace

void add_config(CLI::App& program) {
  const auto [command, arguments] = add_command<PrintedConfig>(
      program, "config", "check a config and print it resolved", run_config);
  command.footer(R"(Examples:
  wisp config apps/configs/cifar10_resnet20.toml workers=4
  wisp config --reference > docs/config.md)");
  CLI::Option& file = arguments.config.add_to(command);
  command
      .add_flag("--reference", arguments.reference,
                "print every key with type, default, unit and meaning, as Markdown")
      ->excludes(&file);
  file.required(false);
}

}  // namespace wisp
