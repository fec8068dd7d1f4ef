#include "apps/setup/methods.h"

#include <fmt/format.h>

#include <memory>
#include <string>

#include "apps/commands/commands.h"
#include "apps/reference/method_matrix.h"

namespace wisp {
namespace {

/// One line per compression method, with its paper.
std::string list_methods() {
  std::string text;
  for (const std::string& name : method_names())
    text += fmt::format("{:<12} {}\n", name, bind_method(name).summary);
  return text;
}

/// One method's options: key, type, default, meaning. Throws Error listing the known methods if
/// there is no `name`.
std::string describe_method(const std::string& name) {
  const BoundMethod method = bind_method(name);
  std::string text = fmt::format("{}: {}\n", name, method.summary);
  for (const ConfigKey& key : method.keys) {
    text += fmt::format("  {} ({}, default {})\n      {}\n", key.name, key.type, key.initial,
                        key.meaning);
  }
  return text;
}

}  // namespace

void add_methods(CLI::App& program) {
  CLI::App& command =
      *program.add_subcommand("methods", "list the compression methods, or describe one");
  command.footer(R"(Examples:
  wisp methods dgc
  wisp methods --matrix
The matrix has a column for each choice. All else is sgd (adamw where a method needs it), f32, scope layer and 4 workers.
(yes) means that it runs with a remark, printed below.)");
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
