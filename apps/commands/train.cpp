#include <csignal>
#include <mutex>
#include <optional>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/commands/stop_signals.h"
#include "apps/train/trainer.h"

namespace wisp {
namespace {

struct TrainArguments {
  ConfigArguments config;
  std::string out;
  bool resume = false, overwrite = false, quiet = false;
};

RunDirectory::Open how_to_open(const TrainArguments& arguments) {
  if (arguments.resume) return RunDirectory::Open::resume;
  return arguments.overwrite ? RunDirectory::Open::overwrite : RunDirectory::Open::create;
}

void run_train(const TrainArguments& arguments) {
  const std::string out = arguments.out.empty() ? "runs/" + arguments.config.stem() : arguments.out;
  // The handler is set at the first question, before the first step; there is nothing to save
  // earlier.
  std::optional<StopSignals> signals;
  std::once_flag asked;
  const auto stop = [&] {
    std::call_once(asked, [&] { signals.emplace(); });
    return StopSignals::received() != 0;
  };
  if (!train(arguments.config.load(), {out, how_to_open(arguments), arguments.quiet, stop}))
    throw ExitStatus{ExitStatus::kBySignal +
                     (stop() ? StopSignals::received() : SIGTERM)};  // came to another rank
}

}  // namespace

void add_train(CLI::App& program) {
  const auto [command, arguments] =
      add_command<TrainArguments>(program, "train", "train the model of a config", run_train);
  command.footer(R"(Examples:
  wisp train apps/configs/cifar10_resnet20.toml data.path=DIR --out runs/dense
  wisp train apps/configs/cifar10_resnet20.toml compression.method=dgc workers=4 --out runs/dgc
  wisp train apps/configs/cifar10_resnet20.toml compression.method=dgc workers=4 --out runs/dgc --resume
The last command may be given at any time, by a batch system too: it starts the run, goes on with it, or says that
nothing is left to train.
Ctrl-C, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 finish and save the current step. A second Ctrl-C or SIGTERM, or any of
them before the first step, ends the run at once.)");
  arguments.config.add_to(command);
  command.add_option("--out", arguments.out, "run directory (default: runs/NAME of the config)");
  CLI::Option* resume = command.add_flag(
      "--resume", arguments.resume,
      "go on from the newest checkpoint in --out; without one, start from the beginning");
  command.add_flag("--overwrite", arguments.overwrite, "replace the run in --out")
      ->excludes(resume);
  command.add_flag("--quiet", arguments.quiet, "print no progress, only warnings and errors");
}

}  // namespace wisp
