#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/reference/config_reference.h"

namespace wisp {

void add_config(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("config", "check a config and print it resolved");
  command.footer(R"(Examples:
  wisp config apps/configs/cifar10_resnet20.toml workers=4
  wisp config --reference > docs/config.md)");
  const auto arguments = std::make_shared<ConfigArguments>();
  const auto reference = std::make_shared<bool>(false);
  CLI::Option& file = arguments->add_to(command);
  command
      .add_flag("--reference", *reference,
                "print every key with type, default, unit and meaning, as Markdown")
      ->excludes(&file);
  file.required(false);
  command.callback([arguments, reference] {
    if (*reference) {
      fmt::print("{}", config_reference());
    } else if (arguments->path.empty()) {
      throw CLI::RequiredError("config");
    } else {
      fmt::print("{}", arguments->prepare().config().resolved());
    }
  });
}

}  // namespace wisp
