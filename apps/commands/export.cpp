#include <fmt/format.h>

#include <memory>

#include "apps/commands/commands.h"
#include "apps/interchange/exchange.h"

namespace wisp {
namespace {

struct Arguments {
  std::string run;
  std::string to;
  std::vector<std::string> overrides;
  std::string checkpoint = "last";
};

void run(const Arguments& arguments) {
  export_run(arguments.run, arguments.to, arguments.overrides, arguments.checkpoint);
  fmt::print("{}: written\n", arguments.to);
}

}  // namespace

void add_export(CLI::App& program) {
  CLI::App& command =
      *program.add_subcommand("export", "write the model of a run's checkpoint for other programs");
  const auto arguments = std::make_shared<Arguments>();
  command.add_option("run", arguments->run, "run directory")->required();
  command
      .add_option("--to", arguments->to,
                  "FILE.safetensors: weights as PyTorch names them; FILE.onnx: weights and graph, "
                  "opset 17")
      ->required();
  command.add_option("overrides", arguments->overrides, "keys to change: threads=2");
  command.add_option("--checkpoint", arguments->checkpoint, "last, best, or a step");
  command.footer(
      "Examples:\n"
      "  wisp export runs/dgc --to model.onnx\n"
      "  wisp export runs/dgc --checkpoint best --to model.safetensors\n"
      "An ONNX model's input is (N, C, H, W) f32: pixels as the loader normalises them, (pixel - "
      "mean) / deviation\nper channel. Its output is the logits.");
  command.callback([arguments] { run(*arguments); });
}

}  // namespace wisp
