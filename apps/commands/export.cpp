#include <fmt/format.h>

#include "apps/commands/commands.h"
#include "apps/interchange/exchange.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

struct ExportArguments {
  std::string run;
  std::string to;
  std::vector<std::string> overrides;
  std::string checkpoint = "last";
};

void run_export(const ExportArguments& arguments) {
  const std::vector<std::string> notices =
      export_run(arguments.run, arguments.to, arguments.overrides, arguments.checkpoint);
  for (const std::string& notice : notices) write_notice(notice);
  write_out(visible(arguments.to) + ": written\n");
}

}  // namespace

void add_export(CLI::App& program) {
  const auto [command, arguments] = add_command<ExportArguments>(
      program, "export", "write the model of a run's checkpoint for other programs", run_export);
  command.add_option("run", arguments.run, "run directory")->required();
  command
      .add_option("--to", arguments.to,
                  "FILE.safetensors: weights as PyTorch names them; FILE.onnx: weights and graph, "
                  "opset 17")
      ->required();
  command.add_option("overrides", arguments.overrides, "keys to change: threads=2");
  add_with_default(command, "--checkpoint", arguments.checkpoint, "last, best, or a step");
  command.footer(R"(Examples:
  wisp export runs/dgc --to model.onnx
  wisp export runs/dgc --checkpoint best --to model.safetensors
An ONNX model's inputs have the data's names. For images the input is "input",
(N, C, H, W) f32, normalised as by the loader: (pixel - mean) / deviation per channel.
The output is "logits". A sequence is read one position at a time, as (1, N, ...).
Carried state goes in as state_0, ..., zeros at the beginning, and comes out as
state_0_after, ... Spectrograms are read one at a time, (1, frames, F), with any number
of frames.)");
}

}  // namespace wisp
