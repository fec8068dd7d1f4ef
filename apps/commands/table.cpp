#include "apps/table/table.h"

#include <filesystem>
#include <utility>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "core/base/error.h"
#include "core/base/omp_threads.h"

namespace wisp {
namespace {

struct TableArguments {
  std::string name, data;
  TableRequest request;
  bool dry = false, show = false;
};

void table(TableArguments& arguments) {
  std::string& name = arguments.name;
  TableRequest& request = arguments.request;
  std::vector<std::string>& overrides = request.overrides;
  request.program = std::filesystem::read_symlink("/proc/self/exe").string();
  if (name.find('=') != name.npos && name.find('/') == name.npos && !name.ends_with(".toml"))
    overrides.insert(overrides.begin(), std::exchange(name, ""));
  if (!arguments.data.empty()) overrides.insert(overrides.begin(), "data.path=" + arguments.data);
  const auto load = [](const std::string& path, std::vector<std::string> all) {
    return ConfigArguments{path, std::move(all)}.load();
  };
  const auto end = [](int status) {
    if (status != 0) throw ExitStatus{status};
  };
  if (name.empty()) {
    WISP_CHECK(arguments.dry || overrides.empty(), "the list of tables trains nothing: overrides ",
               "and --data are for --dry or for a table");
    return end(list_tables(request, arguments.dry, load));
  }
  TableFile file = TableFile::read(find_table(name));
  file.take_seeds(request.seeds);
  if (arguments.dry) return end(plan_table(file, request, load));
  if (arguments.show) return show_table(file, request);
  end(run_table(file, request, load));
}

}  // namespace

void add_table(CLI::App& program) {
  const auto [command, arguments] =
      add_command<TableArguments>(program, "table", "reproduce a table of a paper", table);
  TableRequest& request = arguments.request;
  command.add_option("table", arguments.name,
                     "name of a table, or a TOML file; without it, the tables are listed");
  command.add_option("overrides", request.overrides,
                     "keys of all rows: device=cuda train.epochs=5");
  command.add_option("--data", arguments.data, "folder of the data set (data.path)");
  command.add_option("--scale", request.scale, "small or paper (default: the table's first scale)")
      ->check(CLI::IsMember({"small", "paper"}));
  add_with_default(command, "--out", request.out, "directory of the tables and their runs");
  command
      .add_option("--seeds", request.seeds,
                  "number of seeds, from 1 (default: the table's own seeds)")
      ->check(CLI::PositiveNumber);
  add_number(command, "--jobs", request.jobs, "number of runs at a time",
             CLI::Range(1, kMostThreads));
  add_number(command, "--nice", request.niceness,
             "niceness of the runs: 19 takes the time that others leave, 0 competes",
             CLI::Range(0, 19));
  CLI::Option* dry = command.add_flag(
      "--dry", arguments.dry,
      "print steps, workers and cost of each row, or of each table; train nothing");
  command
      .add_flag("--show", arguments.show,
                "print the table from the runs that are there; train nothing")
      ->excludes(dry);
  command.footer(R"(Example:
  wisp table dgc-cifar10 --data DIR
Trains each row with each seed, compares it with the dense run of the same seed, and writes
OUT/TABLE-SCALE/table.md, table.html and results.csv. The same command goes on where a
table was stopped.)");
}

}  // namespace wisp
