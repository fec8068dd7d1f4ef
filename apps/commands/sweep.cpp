#include "apps/sweep/sweep.h"

#include <filesystem>
#include <memory>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"

namespace wisp {
namespace {

struct SweepArguments {
  std::string config, out;
  std::vector<std::string> overrides;
  int jobs = 1;
};

void run_sweep(const SweepArguments& arguments) {
  const std::string stem = std::filesystem::path(arguments.config).stem().string();
  SweepRequest request;
  request.program = std::filesystem::read_symlink("/proc/self/exe").string();
  request.config = arguments.config;
  request.out = arguments.out.empty() ? "runs/" + stem + "-sweep" : arguments.out;
  request.overrides = arguments.overrides;
  request.jobs = arguments.jobs;
  const int status = run_sweep(request, [&](std::vector<std::string> overrides) {
    return ConfigArguments{arguments.config, std::move(overrides)}.load();
  });
  if (status != 0) throw ExitStatus{status};
}

}  // namespace

void add_sweep(CLI::App& program) {
  CLI::App& command = *program.add_subcommand("sweep", "train every combination of some values");
  const auto arguments = std::make_shared<SweepArguments>();
  command.add_option("config", arguments->config, "TOML file")
      ->required()
      ->check(CLI::ExistingFile);
  command.add_option("overrides", arguments->overrides,
                     "keys and their values: compression.ratio=0.1,0.01 seed=1,2,3");
  command.add_option("--out", arguments->out,
                     "directory of the runs (default: runs/NAME-sweep of the config)");
  add_number(command, "--jobs", arguments->jobs, "number of runs at a time", CLI::PositiveNumber);
  command.footer(R"(Example:
  wisp sweep apps/configs/cifar10_resnet20.toml compression.method=none,topk,dgc compression.ratio=0.01,0.001 seed=1,2,3 --out runs/ratios
A key that a combination does not have (compression.ratio without a sparse method) is
left out there. The same command continues a stopped sweep. Writes OUT/sweep.csv, a row
per run, and OUT/sweep.md, mean and standard deviation over the seeds.)");
  command.callback([arguments] { run_sweep(*arguments); });
}

}  // namespace wisp
