#include <fmt/format.h>

#include "apps/commands/commands.h"
#include "apps/reference/device_list.h"
#include "core/io/output_streams.h"

namespace wisp {

void add_devices(CLI::App& program) {
  const auto print_devices = [](bool as_json) {
    const DeviceList list = list_devices();
    write_out(as_json ? device_json(list) : device_table(list));
  };
  const auto [command, json] = add_command<bool>(
      program, "devices", "list the devices that this program can train on", print_devices);
  command.footer(R"(Examples:
  wisp devices
  wisp devices --json
The key device of a run selects one: cpu, cuda (the first GPU) or emulated.)");
  command.add_flag("--json", json, "print one JSON object");
}

}  // namespace wisp
