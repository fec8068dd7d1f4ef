#include "apps/commands/asked_run.h"

#include <fmt/format.h>

namespace wisp {

void AskedRun::add_to(CLI::App& command) {
  command.add_option("run", path, "run directory")->required();
  command.add_option("--set", overrides, "a key to change: train.precision=f32")
      ->allow_extra_args(false);
  command.add_option("--checkpoint", checkpoint, "last, best, or a step");
  command.add_flag("--json", json, "print JSON");
}

std::unique_ptr<Inference> AskedRun::open() const {
  auto model = std::make_unique<Inference>(path, overrides, checkpoint);
  for (const std::string& notice : model->notices()) fmt::print(stderr, "wisp: {}\n", notice);
  return model;
}

}  // namespace wisp
