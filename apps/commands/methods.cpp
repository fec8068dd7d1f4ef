#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"
#include "apps/method_list.h"

namespace wisp {

void add_methods(CLI::App& program) {
  CLI::App& command =
      *program.add_subcommand("methods", "list the compression methods, or describe one");
  command.footer("Example:\n  wisp methods dgc");
  const auto method = std::make_shared<std::string>();
  command.add_option("method", *method, "the method to describe");
  command.callback(
      [method] { fmt::print("{}", method->empty() ? list_methods() : describe_method(*method)); });
}

}  // namespace wisp
