#include "apps/inference/generate.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/asked_run.h"
#include "apps/commands/commands.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

struct GenerateArguments {
  AskedRun run;
  std::string prompt;
  GenerateOptions options;
};

void print_text(TextReader& reader, const Prompt& prompt, const GenerateArguments& arguments) {
  const std::vector<std::string>& words = reader.vocabulary().words();
  WordsAsText text;
  const auto print = [&](int32_t token) {
    write_out(text.next(visible(words[static_cast<size_t>(token)])));
  };
  if (!arguments.prompt.empty()) {
    for (const int32_t token : prompt.tokens) print(token);
  }
  generate(reader, prompt, arguments.options, [&](const DrawnWord& drawn) { print(drawn.token); });
  if (text.in_line) write_out("\n");
}

void print_json(TextReader& reader, const Prompt& prompt, const GenerateOptions& options) {
  const std::vector<std::string>& words = reader.vocabulary().words();
  nlohmann::ordered_json object;
  object["prompt"] = {{"tokens", prompt.tokens}, {"unknown", prompt.unknown}};
  object["temperature"] = options.temperature;
  object["top_k"] = options.top_k;
  object["seed"] = options.seed;
  WordsAsText text;
  std::string all;
  for (const char* list : {"tokens", "words", "log_probabilities"})
    object[list] = nlohmann::ordered_json::array();
  generate(reader, prompt, options, [&](const DrawnWord& drawn) {
    const std::string& word = words[static_cast<size_t>(drawn.token)];
    object["tokens"].push_back(drawn.token);
    object["words"].push_back(word);
    object["log_probabilities"].push_back(drawn.log_probability);
    all += text.next(word);
  });
  object["text"] = all;
  write_out(fmt::format(
      "{}\n", object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)));
}

void run_generate(GenerateArguments& arguments) {
  check(arguments.options);  // fails before the model is read and the prompt is printed
  const std::unique_ptr<Inference> model = arguments.run.open();
  TextReader reader(*model);
  const Prompt prompt = Prompt::of(arguments.prompt, reader.vocabulary());
  if (!prompt.unknown.empty())
    write_notice(fmt::format("read as {}, as the run does not know them: {}", Vocabulary::kUnknown,
                             fmt::join(prompt.unknown, ", ")));
  arguments.run.json ? print_json(reader, prompt, arguments.options)
                     : print_text(reader, prompt, arguments);
}

}  // namespace

void add_generate(CLI::App& program) {
  const auto [command, arguments] = add_command<GenerateArguments>(
      program, "generate", "continue a text with the model of a run of words", run_generate);
  command.footer(R"(Examples:
  wisp generate runs/text
  wisp generate runs/text --prompt "the company said" --tokens 40 --temperature 0.8 --top-k 40
  wisp generate runs/text --temperature 0 --json
Needs no data set. Without a prompt a new line begins. Unknown words of the prompt are read as <unk>, which is never
drawn. --json prints an object with the model's log probabilities of the words, independent of the temperature.)");
  GenerateOptions& options = arguments.options;
  arguments.run.add_to(command);
  command.add_option("--prompt", arguments.prompt, "words to continue");
  add_with_default(command, "--tokens", options.tokens,
                   "number of words to draw; the end of a line counts as one");
  add_with_default(command, "--temperature", options.temperature,
                   "divisor of the logits; 0: always the most probable word");
  add_with_default(command, "--top-k", options.top_k,
                   "number of most probable words to draw from; 0: all");
  add_with_default(command, "--seed", options.seed,
                   "seed of the draws; the same seed gives the same text");
}

}  // namespace wisp
