#include <fmt/format.h>

#include <string>
#include <vector>

#include "apps/commands/commands.h"
#include "apps/speech/arpa.h"
#include "apps/speech/ngram_training.h"
#include "core/io/input_file.h"
#include "core/io/output_streams.h"
#include "core/io/visible_text.h"
#include "data/text/vocabulary.h"

namespace wisp {
namespace {

struct LmArguments {
  std::string text, out, perplexity;
  int32_t order = 3;
};

/// A file's text. Says if lines have the end that language models of Wisp read.
std::string read(const std::string& path) {
  const std::string text = naming(path, [&] { return read_utf8(path, Input::file_or_pipe); });
  if (const int64_t ends = written_ends(text).at_line_ends; ends > 0)
    write_notice(fmt::format("{}: {} lines end with the word {}, which is read as their end", path,
                             ends, Vocabulary::kEnd));
  return text;
}

void print_counts(const std::string& file, const std::vector<int64_t>& counts) {
  write_out(visible(file) + ":");
  for (size_t i = 0; i < counts.size(); ++i)
    write_out(fmt::format("{} {} {}-grams", i > 0 ? "," : "", counts[i], i + 1));
  write_out("\n");
}

void print_score(const std::string& file, const NgramScore& score) {
  write_out(fmt::format(
      "{}: perplexity {:.2f}, {} words of {} sentences, whose ends are words; {:.2f} % unknown",
      visible(file), score.perplexity(), score.words, score.sentences,
      100.0 * static_cast<double>(score.unknown) / static_cast<double>(score.words)));
  if (score.unknown > 0)
    write_out(fmt::format(", perplexity of the others {:.2f}", score.known_perplexity()));
  write_out("\n");
}

void run_lm(const LmArguments& arguments) {
  const bool writes = !arguments.out.empty(), scores = !arguments.perplexity.empty();
  if (!writes && !scores) throw CLI::RequiredError("--out or --perplexity");
  const std::string text = read(arguments.text), scored = scores ? read(arguments.perplexity) : "";
  const NgramModel model =
      naming(arguments.text, [&] { return train_ngrams(text, arguments.order); });
  if (writes) write_arpa(model, arguments.out);
  print_counts(writes ? arguments.out : arguments.text, model.counts());
  if (!scores) return;
  print_score(arguments.perplexity,
              naming(arguments.perplexity, [&] { return score_ngrams(model, scored); }));
}

}  // namespace

void add_lm(CLI::App& program) {
  const auto [command, arguments] = add_command<LmArguments>(
      program, "lm", "train an n-gram model of words on a text, for beam search", run_lm);
  command.add_option("text", arguments.text, "UTF-8 text with a sentence on each line")->required();
  add_number(command, "--order", arguments.order, "number of words of the longest n-grams",
             CLI::Range(1, 10));
  command.add_option("--out", arguments.out, "file to write, in ARPA format");
  command.add_option("--perplexity", arguments.perplexity, "text to score, sentence by sentence");
  command.footer(R"(Examples:
  wisp lm my.txt --out text.arpa
  wisp lm my.txt --order 2 --perplexity other.txt
The model uses interpolated Kneser-Ney smoothing. Words are separated by white space and kept as written. Words that the
text does not have are scored as <unk>.)");
}

}  // namespace wisp
