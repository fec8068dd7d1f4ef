#include "apps/commands/asked_beam.h"

#include "apps/speech/arpa.h"

namespace wisp {

void AskedBeam::add_to(CLI::App& command) {
  command.add_option("--beam", options.width, "texts that a search keeps in each frame")
      ->check(CLI::PositiveNumber);
  command.add_option("--lm", words, "ARPA file of an n-gram model of words");
  command.add_option("--alpha", options.alpha, "weight of the words' log probability")
      ->capture_default_str();
  command.add_option("--beta", options.beta, "added for each word")->capture_default_str();
}

std::optional<BeamOptions> AskedBeam::open(std::optional<NgramModel>& model) const {
  if (!asked()) return {};
  BeamOptions beam = options;
  if (beam.width == 0) beam.width = BeamOptions{}.width;
  if (!words.empty()) beam.words = &model.emplace(read_arpa(words));
  return beam;
}

}  // namespace wisp
