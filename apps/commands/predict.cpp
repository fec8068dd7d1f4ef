#include "apps/inference/predict.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/asked_run.h"
#include "apps/commands/commands.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

struct PredictArguments {
  AskedRun run;
  int64_t top = 3;
};

void print_json(const Prediction& prediction) {
  nlohmann::ordered_json line;
  line["file"] = prediction.file;
  if (!prediction.error.empty()) line["error"] = prediction.error;
  for (const ClassProbability& found : prediction.classes) {
    nlohmann::ordered_json& of_class = line["classes"].emplace_back();
    of_class["class"] = found.index;
    if (!found.name.empty()) of_class["name"] = found.name;
    of_class["probability"] = found.probability;
  }
  write_out(
      fmt::format("{}\n", line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

void print_text(const Prediction& prediction) {
  if (!prediction.error.empty()) return write_notice(prediction.error);
  std::string line = visible(prediction.file);
  const char* separator = ": ";
  for (const ClassProbability& found : prediction.classes) {
    const std::string name =
        found.name.empty() ? fmt::format("class {}", found.index) : visible_name(found.name);
    line += fmt::format("{}{} {:.1f} %", separator, name, 100.0 * found.probability);
    separator = ", ";
  }
  write_out(fmt::format("{}\n", line));
}

void run_predict(PredictArguments& arguments) {
  const std::unique_ptr<Inference> model = arguments.run.open();
  bool failed = false;
  predict(*model, arguments.run.files, arguments.top, [&](const Prediction& prediction) {
    arguments.run.json ? print_json(prediction) : print_text(prediction);
    failed = failed || !prediction.error.empty();
  });
  if (failed) throw ExitStatus{1};
}

}  // namespace

void add_predict(CLI::App& program) {
  const auto [command, arguments] = add_command<PredictArguments>(
      program, "predict", "classify photos with a run's model", run_predict);
  command.footer(R"(Examples:
  wisp predict runs/dgc cat.jpg dog.png
  wisp predict runs/dgc --json --top 10 cat.jpg
  wisp predict runs/dgc threads=1 cat.jpg dog.png
Needs no data set. The largest centred part of a photo with the images' aspect ratio is scaled to their size.
--json prints one object per line. A file that cannot be read is reported and skipped, and the exit status is 1.)");
  arguments.run.add_to(command, "photos: JPEG, PNG, ...");
  add_number(command, "--top", arguments.top, "number of classes printed for each photo",
             CLI::PositiveNumber);
}

}  // namespace wisp
