#include "apps/commands/asked_beam.h"

#include <fmt/format.h>

#include "apps/commands/commands.h"
#include "apps/speech/arpa.h"
#include "apps/speech/spelling.h"
#include "core/io/output_streams.h"

namespace wisp {

CLI::Option& AskedBeam::add_search_to(CLI::App& command) {
  CLI::Option& beam = *command.add_option("--beam", options.width,
                                          "number of texts that the search keeps in each frame");
  beam.check(CLI::Range(int64_t{1}, BeamOptions::kWidest));
  if (options.width > 0) beam.capture_default_str();
  return *command.add_option("--lm", words, "ARPA file of an n-gram model of words");
}

void AskedBeam::add_to(CLI::App& command) {
  add_search_to(command);
  add_with_default(command, "--alpha", options.alpha, "weight of the words' log probability")
      .needs("--lm");
  add_with_default(command, "--beta", options.beta, "bonus added for each word").needs("--lm");
}

std::optional<BeamOptions> AskedBeam::open(std::optional<NgramModel>& model,
                                           const Labels& labels) const {
  if (!asked()) return {};
  BeamOptions beam = options;
  if (beam.width == 0) beam.width = BeamOptions{}.width;
  if (words.empty()) return beam;
  beam.words = &model.emplace(read_arpa(words));
  const std::string notice = spelling_notice(*model, labels);
  if (!notice.empty()) write_notice(fmt::format("{}: {}", words, notice));
  return beam;
}

}  // namespace wisp
