#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"
#include "apps/reference/method_list.h"
#include "apps/reference/method_matrix.h"

namespace wisp {

void add_methods(CLI::App& program) {
  CLI::App& command =
      *program.add_subcommand("methods", "list the compression methods, or describe one");
  command.footer(
      "Examples:\n"
      "  wisp methods dgc\n"
      "  wisp methods --matrix\n"
      "The matrix has a column for each choice. All else is sgd (adamw where a method needs it), "
      "f32, scope layer and 4 workers.\n"
      "(yes) means that it runs with a remark, printed below.");
  const auto method = std::make_shared<std::string>();
  const auto matrix = std::make_shared<bool>(false);
  CLI::Option& name = *command.add_option("method", *method, "the method to describe");
  command.add_flag("--matrix", *matrix, "print the combinations of methods with other choices")
      ->excludes(&name);
  command.callback([method, matrix] {
    if (*matrix) {
      fmt::print("{}", method_matrix());
    } else {
      fmt::print("{}", method->empty() ? list_methods() : describe_method(*method));
    }
  });
}

}  // namespace wisp
