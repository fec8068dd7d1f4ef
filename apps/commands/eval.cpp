#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"
#include "apps/train/trainer.h"

namespace wisp {
namespace {

struct Arguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string checkpoint = "last";
  std::string predictions;
};

void print(const char* split, const RunEvaluation& run, const Evaluation& evaluation) {
  fmt::print("{}", split);
  for (size_t i = 0; i < run.metrics.size(); ++i)
    fmt::print(" {} {},", run.metrics[i].name, run.metrics[i].text(evaluation.metrics[i]));
  fmt::print(" loss {:.4f}, {} targets\n", evaluation.loss, evaluation.targets);
}

void run(const Arguments& arguments) {
  const RunEvaluation evaluation =
      evaluate_run(arguments.run, arguments.overrides, arguments.checkpoint, arguments.predictions);
  print("test", evaluation, evaluation.test);
  if (evaluation.validation) print("validation", evaluation, *evaluation.validation);
}

}  // namespace

void add_eval(CLI::App& program) {
  CLI::App& command = *program.add_subcommand(
      "eval", "evaluate a run's checkpoint on its test set and what it held out");
  command.footer("Example:\n  wisp eval runs/dgc --checkpoint best");
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("run", arguments->run, "run directory")->required();
  command.add_option("overrides", arguments->overrides, "keys to change: data.path=DIR");
  command.add_option("--checkpoint", arguments->checkpoint, "last, best, or a step");
  command.add_option("--predictions", arguments->predictions,
                     "write input, labels and logits of the test set to this safetensors file");
  command.callback([arguments] { run(*arguments); });
}

}  // namespace wisp
