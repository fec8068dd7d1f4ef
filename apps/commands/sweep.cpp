#include "apps/sweep/sweep.h"

#include <filesystem>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "core/base/omp_threads.h"

namespace wisp {
namespace {

void sweep(SweepRequest& request) {
  request.program = std::filesystem::read_symlink("/proc/self/exe").string();
  if (request.out.empty())
    request.out = "runs/" + ConfigArguments{request.config}.stem() + "-sweep";
  const int status = run_sweep(request, [&](std::vector<std::string> overrides) {
    return ConfigArguments{request.config, std::move(overrides)}.load();
  });
  if (status != 0) throw ExitStatus{status};
}

}  // namespace

void add_sweep(CLI::App& program) {
  const auto [command, request] =
      add_command<SweepRequest>(program, "sweep", "train every combination of some values", sweep);
  command.add_option("config", request.config, "TOML file")->required()->check(CLI::ExistingFile);
  command.add_option("overrides", request.overrides,
                     "keys and their values: compression.ratio=0.1,0.01 seed=1,2,3");
  command.add_option("--out", request.out,
                     "directory of the runs (default: runs/NAME-sweep of the config)");
  add_number(command, "--jobs", request.jobs, "number of runs at a time",
             CLI::Range(1, kMostThreads));
  command.footer(R"(Example:
  wisp sweep apps/configs/cifar10_resnet20.toml compression.method=none,topk,dgc compression.ratio=0.01,0.001 seed=1,2,3 --out runs/ratios
A key that a combination does not have (compression.ratio without a sparse method) is
left out there. The same command continues a stopped sweep. Writes OUT/sweep.csv, a row
per run, and OUT/sweep.md, mean and standard deviation over the seeds.)");
}

}  // namespace wisp
