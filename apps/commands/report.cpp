#include "apps/report.h"

#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"

namespace wisp {

void add_report(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("report", "compare finished runs");
  const auto runs = std::make_shared<std::vector<std::string>>();
  command.add_option("runs", *runs, "run directories")->required();
  command.callback([runs] { fmt::print("{}", report_table(*runs)); });
}

}  // namespace wisp
