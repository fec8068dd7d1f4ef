#include <fmt/format.h>

#include "apps/commands/commands.h"
#include "apps/commands/config_arguments.h"
#include "apps/interchange/exchange.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

struct ImportArguments {
  std::string file;
  ConfigArguments config;
  std::string out;
  bool overwrite = false;
};

void run_import(const ImportArguments& arguments) {
  const std::string out = arguments.out.empty() ? "runs/" + arguments.config.stem() : arguments.out;
  import_run(arguments.config.load(), arguments.file, out,
             arguments.overwrite ? RunDirectory::Open::overwrite : RunDirectory::Open::create);
  write_out(fmt::format("{}: holds the weights of {}; evaluate with `wisp eval {}`\n", visible(out),
                        visible(arguments.file), visible(out)));
}

}  // namespace

void add_import(CLI::App& program) {
  const auto [command, arguments] = add_command<ImportArguments>(
      program, "import", "make a run from a safetensors file of weights with PyTorch's names",
      run_import);
  command.add_option("file", arguments.file, "safetensors file: torchvision's names for ResNets")
      ->required()
      ->check(CLI::ExistingFile);
  arguments.config.add_to(command);
  command.add_option("--out", arguments.out, "run directory (default: runs/NAME of the config)");
  command.add_flag("--overwrite", arguments.overwrite, "replace the run in --out");
  command.footer(R"(Example:
  wisp import resnet50.safetensors CONFIG.toml --out runs/resnet50
The config has the model, data and workers. To fine-tune, also with another number of classes, train
with model.init=FILE instead.)");
}

}  // namespace wisp
