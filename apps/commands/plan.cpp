#include <fmt/format.h>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/lab/exchange_table.h"
#include "core/io/output_streams.h"

namespace wisp {
namespace {

struct PlanArguments {
  ConfigArguments config;
  bool json = false;
};

void run_plan(const PlanArguments& arguments) {
  const Prepared prepared = arguments.config.prepare();
  const int workers = prepared.options().workers;
  const auto text = arguments.json ? exchange_json : exchange_table;
  write_out(text(prepared.exchange(), workers));
}

}  // namespace

void add_plan(CLI::App& program) {
  const auto [command, arguments] = add_command<PlanArguments>(
      program, "plan", "print the planned exchange of a run, layer by layer", run_plan);
  arguments.config.add_to(command);
  command.add_flag("--dry")->group("");  // accepted from older command lines; not in --help
  command.add_flag("--json", arguments.json, "print one JSON object");
  command.footer(R"(Example:
  wisp plan apps/configs/cifar10_resnet20.toml workers=4 compression.method=dgc
It measures nothing. Of a data set it reads only the vocabulary of a text.
Bytes are those of a step on the busiest worker, at the capacities of its messages, without the 16 bytes of the status.
A layer counts as a unit of its own, with a mean where steps differ. The totals count the actual units.)");
}

}  // namespace wisp
