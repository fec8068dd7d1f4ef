#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "apps/commands/asked_beam.h"
#include "apps/commands/asked_run.h"
#include "apps/commands/commands.h"
#include "apps/inference/hear.h"
#include "apps/run/run_directory.h"
#include "core/base/error.h"
#include "core/io/output_streams.h"

namespace wisp {
namespace {

struct TuneLmArguments {
  AskedRun run;
  AskedBeam beam{.options = {}};
  std::vector<double> alphas{0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5};
  std::vector<double> betas{0.0, 0.5, 1.0, 1.5, 2.0, 3.0};
};

std::vector<Heard> hear_validation(const TuneLmArguments& arguments, Inference& model) {
  const std::string& path = arguments.run.path;
  Prepared run(Config::load(RunDirectory(path, RunDirectory::Open::read).file("config.toml"),
                            arguments.run.overrides));
  WISP_CHECK(run.has_validation(), path,
             " has no validation split to choose weights on; set data.validation");
  run.load();
  for (const std::string& notice : run.passed_over()) write_notice(notice);
  return hear(model, run, Split::validation,
              [](const std::string& damage) { write_notice(damage); });
}

nlohmann::ordered_json json_of(const TriedWeights& tried) {
  return {{"alpha", tried.alpha},
          {"beta", tried.beta},
          {"wer", tried.errors.words.rate()},
          {"cer", tried.errors.characters.rate()}};
}

void run_tune_lm(TuneLmArguments& arguments) {
  const std::unique_ptr<Inference> model = arguments.run.open();
  check_hears(model->facts(), "tune-lm");
  std::optional<NgramModel> words;
  const BeamOptions beam = arguments.beam.open(words, model->facts().names).value();
  const std::vector<Heard> heard = hear_validation(arguments, *model);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  const bool json = arguments.run.json;
  if (!json) write_out(fmt::format("{:>6} {:>6} {:>10} {:>10}\n", "alpha", "beta", "wer", "cer"));
  const TriedWeights best =
      tune_decoding(heard, model->facts().names, beam, arguments.alphas, arguments.betas,
                    model->context().threads, [&](const TriedWeights& tried) {
                      if (json) return all.push_back(json_of(tried));
                      write_out(fmt::format("{:>6} {:>6} {:>8.2f} % {:>8.2f} %\n", tried.alpha,
                                            tried.beta, 100.0 * tried.errors.words.rate(),
                                            100.0 * tried.errors.characters.rate()));
                    });
  if (json) {
    write_out(fmt::format("{}\n",
                          nlohmann::ordered_json{{"best", json_of(best)}, {"tried", all}}.dump(2)));
    return;
  }
  write_out(fmt::format(
      "the fewest errors in {} utterances of the validation split: --alpha {} --beta {}\n",
      best.errors.utterances, best.alpha, best.beta));
}

}  // namespace

void add_tune_lm(CLI::App& program) {
  const auto [command, arguments] = add_command<TuneLmArguments>(
      program, "tune-lm",
      "choose the weights of an n-gram model of words on a run's validation split", run_tune_lm);
  command.footer(R"(Example:
  wisp tune-lm runs/own --lm text.arpa
Searches with each pair of --alphas and --betas. wisp eval and wisp transcribe take the pair with the fewest errors.)");
  arguments.run.add_to(command);
  arguments.beam.add_search_to(command).required();
  add_with_default(command, "--alphas", arguments.alphas,
                   "weights of the words' log probability to try")
      .delimiter(',');
  add_with_default(command, "--betas", arguments.betas, "bonuses per word to try").delimiter(',');
}

}  // namespace wisp
