// The options of a beam search, of the commands that decode speech: wisp transcribe, eval, tune-lm.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "apps/speech/beam_search.h"

namespace wisp {

struct AskedBeam {
  BeamOptions options{.width = 0};  // 0: none was asked for
  std::string words;                // path of an ARPA file, or empty

  /// --beam and --lm, which is returned.
  CLI::Option& add_search_to(CLI::App& command);
  /// These, --alpha and --beta.
  void add_to(CLI::App& command);
  bool asked() const { return options.width > 0 || !words.empty(); }
  /// Reads the model of words into `model`, which has to outlive the options, and says so if it
  /// does not fit the labels. Nothing if no search was asked for.
  std::optional<BeamOptions> open(std::optional<NgramModel>& model, const Labels& labels) const;
};

}  // namespace wisp
