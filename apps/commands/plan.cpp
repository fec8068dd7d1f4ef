#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/lab/exchange_table.h"

namespace wisp {
namespace {

struct Arguments {
  ConfigArguments config;
  bool json = false;
};

void run(const Arguments& arguments) {
  const Prepared prepared = arguments.config.prepare();
  const int workers = prepared.options().workers;
  const auto text = arguments.json ? exchange_json : exchange_table;
  fmt::print("{}", text(prepared.exchange(), workers));
}

}  // namespace

void add_plan(CLI::App& program) {
  CLI::App& command =
      *program.add_subcommand("plan", "say what a run would exchange, layer by layer");
  const auto arguments = std::make_shared<Arguments>();
  arguments->config.add_to(command);
  command.add_flag("--dry")->group("");  // accepted from older command lines; not in --help
  command.add_flag("--json", arguments->json, "as one JSON object");
  command.footer(
      "Example:\n"
      "  wisp plan apps/configs/cifar10_resnet20.toml workers=4 compression.method=dgc\n"
      "From the configuration alone: nothing is measured, no data set is read.\n"
      "Bytes are of a step, on the worker that sends most, at the capacities of its messages, "
      "without the 16 bytes of\nthe status. A layer's are those of a unit of its own, a mean where "
      "steps differ; the totals count the units as they are.");
  command.callback([arguments] { run(*arguments); });
}

}  // namespace wisp
