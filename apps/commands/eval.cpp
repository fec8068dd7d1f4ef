#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/commands/asked_beam.h"
#include "apps/commands/commands.h"
#include "apps/inference/hear.h"
#include "apps/inference/predictions_file.h"
#include "apps/run/run_facts.h"
#include "apps/setup/tally.h"
#include "apps/train/trainer.h"
#include "core/io/output_file.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

using nlohmann::ordered_json;

struct EvalArguments {
  std::string run;
  std::vector<std::string> overrides;
  std::string checkpoint = "last";
  std::string predictions;
  AskedBeam beam;
  std::string alignment;
  bool speakers = false, classes = false, json = false;

  bool decodes() const { return speakers || beam.asked() || !alignment.empty(); }
};

/// The evaluations by the name of their split.
using NamedEvaluations = std::vector<std::pair<const char*, const Evaluation*>>;

/// The test set's utterances, decoded by one search.
struct Decoded {
  std::string way;  // "best path", or name_of()
  std::vector<HeardUtterance> utterances;
  ErrorReport errors;
};

std::string percent(double rate) { return fmt::format("{:.2f} %", 100.0 * rate); }

/// "beam 64, text.arpa, alpha 0.5, beta 1"
std::string name_of(const BeamOptions& beam, const std::string& words) {
  if (words.empty()) return fmt::format("beam {}", beam.width);
  return fmt::format("beam {}, {}, alpha {}, beta {}", beam.width,
                     visible(std::filesystem::path(words).filename().string()), beam.alpha,
                     beam.beta);
}

/// Decodes by the best path and, if given, by the search `beam`.
std::vector<Decoded> decode_all(const EvalArguments& arguments,
                                const std::optional<BeamOptions>& beam, const Prepared& run,
                                Inference& model) {
  const std::vector<Heard> heard =
      hear(model, run, Split::test, [](const std::string& damage) { write_notice(damage); });
  std::vector<Decoded> ways;
  const auto add = [&](const std::string& way, const std::optional<BeamOptions>& by) {
    Decoded decoded{way, decode(heard, model.facts().names, by, model.context().threads), {}};
    decoded.errors = count_errors(decoded.utterances);
    ways.push_back(std::move(decoded));
  };
  add("best path", {});
  if (beam) add(name_of(*beam, arguments.beam.words), beam);
  return ways;
}

void write_alignment(const std::string& path, const Decoded& decoded) {
  std::string text;
  for (const HeardUtterance& utterance : decoded.utterances) {
    const EditCounts words = count_errors(utterance.reference, utterance.hypothesis).words;
    text += fmt::format("{} {}: {} edits, {} words\n{}\n", visible(utterance.id),
                        visible(utterance.speaker), words.edits(), words.reference(),
                        alignment_text(utterance.reference, utterance.hypothesis));
  }
  write_file(path, visible_lines(text), Unread::awaited);
}

/// Throws Error for a run whose samples have no class of their own, as texts and utterances.
void check_has_classes(const Facts& facts) {
  for (const Feed& feed : facts.inputs)
    WISP_CHECK(!feed.padded && !feed.is_sequence(),
               "--classes: needs a run that gives each sample one class, but those of the run (",
               feed.name, ") are sequences");
}

void print_classes(const char* split, const Evaluation& evaluation, const Facts& facts) {
  if (evaluation.classes.empty()) return;
  write_out(fmt::format("\n{:>7} {:>8}  {} by class\n", "targets", "accuracy", split));
  for (size_t c = 0; c < evaluation.classes.size(); ++c) {
    const auto [targets, correct] = evaluation.classes[c];
    const double accuracy = static_cast<double>(correct) / static_cast<double>(targets);
    write_out(fmt::format("{:>7} {:>8}  {}{}\n", targets, targets == 0 ? "-" : percent(accuracy), c,
                          c < facts.names.size() ? " " + visible_name(facts.names[c]) : ""));
  }
}

void print(const char* split, const RunEvaluation& run, const Evaluation& evaluation) {
  write_out(split);
  for (size_t i = 0; i < run.metrics.size(); ++i)
    write_out(fmt::format(" {} {},", visible(run.metrics[i].name),
                          run.metrics[i].text(evaluation.metrics[i])));
  write_out(fmt::format(" loss {:.4f}, {} targets\n", evaluation.loss, evaluation.targets));
}

void print(const std::vector<Decoded>& ways) {
  for (const Decoded& decoded : ways) {
    const ErrorCounts& total = decoded.errors.total;
    write_out(fmt::format("test, {}: wer {}, cer {}, {} of {} utterances have errors\n",
                          decoded.way, percent(total.words.rate()),
                          percent(total.characters.rate()), total.wrong_utterances,
                          total.utterances));
  }
  const auto& speakers = ways.front().errors.speakers;
  if (speakers.size() < 2) return;
  write_out(fmt::format("\n{:<16} {:>10} {:>8}", "speaker", "utterances", "words"));
  for (const Decoded& decoded : ways) write_out(fmt::format("  wer, {}", decoded.way));
  write_out("\n");
  for (const auto& [speaker, counts] : speakers) {
    write_out(fmt::format("{:<16} {:>10} {:>8}", visible(speaker), counts.utterances,
                          counts.words.reference()));
    for (const Decoded& decoded : ways)
      write_out(fmt::format("  {:>{}}", percent(decoded.errors.speakers.at(speaker).words.rate()),
                            decoded.way.size() + 5));
    write_out("\n");
  }
}

ordered_json json_of(const RunEvaluation& run, const Evaluation& evaluation) {
  ordered_json object;
  for (size_t i = 0; i < run.metrics.size(); ++i)
    object[run.metrics[i].name] = evaluation.metrics[i];
  object["loss"] = evaluation.loss;
  object["targets"] = evaluation.targets;
  for (const ClassCount& count : evaluation.classes)
    object["classes"].push_back({{"targets", count.targets}, {"correct", count.correct}});
  return object;
}

ordered_json json_of(const ErrorCounts& counts) {
  return {{"utterances", counts.utterances},
          {"words", counts.words.reference()},
          {"word_edits", counts.words.edits()},
          {"characters", counts.characters.reference()},
          {"character_edits", counts.characters.edits()}};
}

ordered_json json_of(const Decoded& decoded) {
  ordered_json object{{"way", decoded.way}, {"test", json_of(decoded.errors.total)}};
  for (const auto& [speaker, counts] : decoded.errors.speakers)
    object["speakers"][speaker] = json_of(counts);
  return object;
}

void print_json(const RunEvaluation& run, const NamedEvaluations& splits,
                const std::vector<Decoded>& ways) {
  ordered_json object;
  for (const auto& [split, evaluation] : splits) object[split] = json_of(run, *evaluation);
  for (const Decoded& decoded : ways) object["decoded"].push_back(json_of(decoded));
  write_out(
      fmt::format("{}\n", object.dump(2, ' ', false, ordered_json::error_handler_t::replace)));
}

void run_eval(const EvalArguments& arguments) {
  const Facts facts = RunFacts::read(arguments.run).facts;
  if (arguments.decodes()) check_hears(facts, "--speakers, --beam, --lm, --alignment");
  if (!arguments.predictions.empty()) check_predictions(facts, "--predictions");
  if (arguments.classes) check_has_classes(facts);
  std::optional<NgramModel> words;
  const std::optional<BeamOptions> beam = arguments.beam.open(words, facts.names);
  std::vector<Decoded> ways;
  AskModel ask;
  if (arguments.decodes() || !arguments.predictions.empty()) {
    ask = [&](const Prepared& run, Inference& model) {
      if (!arguments.predictions.empty()) write_predictions(arguments.predictions, run, model);
      if (arguments.decodes()) ways = decode_all(arguments, beam, run, model);
    };
  }
  const RunEvaluation evaluation = evaluate_run(arguments.run, arguments.overrides,
                                                arguments.checkpoint, ask, arguments.classes);
  for (const std::string& notice : evaluation.notices) write_notice(notice);
  NamedEvaluations splits{{"test", &evaluation.test}};
  if (evaluation.validation) splits.emplace_back("validation", &*evaluation.validation);
  for (const auto& [split, found] : splits)
    if (!std::isfinite(found->loss)) write_notice(fmt::format("{}: {}", split, kNotFinite));
  if (!arguments.alignment.empty()) write_alignment(arguments.alignment, ways.back());
  if (arguments.json) {
    print_json(evaluation, splits, ways);
  } else {
    for (const auto& [split, found] : splits) print(split, evaluation, *found);
    for (const auto& [split, found] : splits) print_classes(split, *found, facts);
    if (!ways.empty()) print(ways);
  }
}

}  // namespace

void add_eval(CLI::App& program) {
  const auto [command, arguments] = add_command<EvalArguments>(
      program, "eval", "evaluate a run's checkpoint on its test set and validation split",
      run_eval);
  command.footer(R"(Examples:
  wisp eval runs/dgc --checkpoint best
  wisp eval runs/own --beam 64 --lm text.arpa --alignment words.txt
--speakers, --beam, --lm and --alignment are for speech. They count the test set's errors by speaker, for the likeliest
label of each frame and for the search.)");
  command.add_option("run", arguments.run, "run directory")->required();
  command.add_option("overrides", arguments.overrides, "keys to change: data.path=DIR");
  add_with_default(command, "--checkpoint", arguments.checkpoint, "last, best, or a step");
  command.add_option("--predictions", arguments.predictions,
                     "write input, labels and logits of the test set to this safetensors file");
  command.add_flag("--classes", arguments.classes, "print the accuracy of each class");
  command.add_flag("--speakers", arguments.speakers, "print the errors of each speaker");
  arguments.beam.add_to(command);
  command.add_option("--alignment", arguments.alignment,
                     "write each reference text above the recognised text to this file");
  command.add_flag("--json", arguments.json, "print JSON");
}

}  // namespace wisp
