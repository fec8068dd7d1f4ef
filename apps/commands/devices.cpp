#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"
#include "apps/reference/device_list.h"

namespace wisp {

void add_devices(CLI::App& program) {
  CLI::App& command =
      *program.add_subcommand("devices", "list the devices that this program can train on");
  command.footer(R"(Examples:
  wisp devices
  wisp devices --json
The key device of a run selects one: cpu, cuda (the first GPU) or emulated.)");
  const auto json = std::make_shared<bool>(false);
  command.add_flag("--json", *json, "print one JSON object");
  command.callback([json] {
    const DeviceList list = list_devices();
    fmt::print("{}", *json ? device_json(list) : device_table(list));
  });
}

}  // namespace wisp
