#include "apps/inference/score.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/commands/asked_run.h"
#include "apps/commands/commands.h"
#include "core/io/input_file.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"

namespace wisp {
namespace {

Score score_file(Inference& model, const std::string& path) {
  return naming(path, [&] { return score(model, read_utf8(path, Input::file_or_pipe)); });
}

void print_text(const std::string& file, const Score& score) {
  write_out(fmt::format("{}: perplexity {:.2f}, {:.4f} nats a word, {:.4f} bits a character\n",
                        visible(file), score.perplexity(), score.nats_per_word(),
                        score.bits_per_character()));
  write_out(fmt::format(
      "{} words, each but the text's first, a line's end is one; {:.2f} % unknown", score.words,
      100.0 * static_cast<double>(score.unknown) / static_cast<double>(score.words)));
  if (score.unknown > 0)
    write_out(fmt::format(", perplexity of the others {:.2f}", score.known_perplexity()));
  write_out("\n");
}

void print_json(const std::string& file, const Score& score) {
  nlohmann::ordered_json object;
  object["file"] = file;
  object["perplexity"] = score.perplexity();
  object["nats_per_word"] = score.nats_per_word();
  object["bits_per_character"] = score.bits_per_character();
  object["words"] = score.words;
  object["unknown"] = score.unknown;
  object["known_perplexity"] = score.known_perplexity();
  object["characters"] = score.characters;
  write_out(
      fmt::format("{}\n", object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)));
}

void run_score(AskedRun& asked) {
  const std::unique_ptr<Inference> model = asked.open();
  WISP_CHECK(asked.files.size() == 1, "one text is scored at a time, and there are ",
             asked.files.size(), ": ", fmt::format("{}", fmt::join(asked.files, ", ")));
  const std::string& file = asked.files.front();
  const Score found = score_file(*model, file);
  asked.json ? print_json(file, found) : print_text(file, found);
}

}  // namespace

void add_score(CLI::App& program) {
  const auto [command, arguments] = add_command<AskedRun>(
      program, "score", "print the perplexity of a text for a run of words", run_score);
  command.footer(R"(Examples:
  wisp score runs/text my.txt
  wisp score runs/text my.txt --checkpoint best --json
Needs no data set. Reads the UTF-8 text from beginning to end in one column. Each word except the first is scored once,
given all words before it; the end of a line (<eos>) is a word. Unknown words are scored as <unk>.)");
  arguments.add_to(command, "UTF-8 text");
}

}  // namespace wisp
