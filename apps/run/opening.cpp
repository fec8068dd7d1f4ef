#include "apps/run/opening.h"

#include <fmt/format.h>

namespace wisp {
namespace {

/// The resolved value of a string key, without quotes.
std::string chosen(const Prepared& run, const std::string& name) {
  for (const ConfigKey& key : run.config().keys()) {
    if (key.name == name) return key.value.substr(1, key.value.size() - 2);
  }
  return "";
}

std::string model_line(const Prepared& run) {
  int64_t parameters = 0;
  for (const LayerPlan& layer : run.exchange().layers) parameters += layer.numel;
  return fmt::format("model: {}, {} parameters to train", run.options().model, parameters);
}

std::string data_line(const Prepared& run, const RunFacts& facts) {
  std::string text = "data: " + chosen(run, "data.name");
  for (const SplitFacts& part : facts.data)
    text += fmt::format(", {} {}", part.split, part.samples);
  return text;
}

std::string workers_line(const Prepared& run) {
  const TrainOptions& options = run.options();
  if (options.workers == 1) return "workers: 1, on " + options.device;
  return fmt::format("workers: {} {}, on {}, method {}", options.workers,
                     world().processes() ? "processes" : "threads", options.device,
                     chosen(run, "compression.method"));
}

}  // namespace

std::string opening_text(const Prepared& run, const RunFacts& facts, const std::string& directory) {
  return fmt::format("{}\n{}\n{}\nrun directory: {}", model_line(run), data_line(run, facts),
                     workers_line(run), directory);
}

}  // namespace wisp
