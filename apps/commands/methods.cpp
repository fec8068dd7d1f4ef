#include "apps/setup/methods.h"

#include <fmt/format.h>

#include <string>

#include "apps/commands/commands.h"
#include "apps/reference/method_matrix.h"
#include "core/io/output_streams.h"

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

struct MethodsArguments {
  std::string method;
  bool matrix = false;
};

void run_methods(const MethodsArguments& arguments) {
  if (arguments.matrix) {
    write_out(method_matrix());
  } else {
    write_out(arguments.method.empty() ? list_methods() : describe_method(arguments.method));
  }
}

}  // namespace

void add_methods(CLI::App& program) {
  const auto [command, arguments] = add_command<MethodsArguments>(
      program, "methods", "list the compression methods, or describe one", run_methods);
  command.footer(R"(Examples:
  wisp methods dgc
  wisp methods --matrix
The matrix has a column for each choice. All else is sgd (adamw where a method needs it), f32, scope layer and 4 workers.
(yes) means that it runs with a remark, printed below.)");
  CLI::Option& name = *command.add_option("method", arguments.method, "the method to describe");
  command
      .add_flag("--matrix", arguments.matrix,
                "print the combinations of methods with other choices")
      ->excludes(&name);
}

}  // namespace wisp
