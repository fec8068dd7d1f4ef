// The beam search options of the commands that decode speech: wisp transcribe, eval, tune-lm. One
// thread.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "apps/speech/beam_search.h"

namespace wisp {

struct AskedBeam {
  BeamOptions options{.width = 0};  // width 0: no search
  std::string words;                // path of an ARPA file; may be empty

  /// Adds --beam and --lm, and returns --lm.
  CLI::Option& add_search_to(CLI::App& command);
  /// Adds --beam, --lm, --alpha and --beta.
  void add_to(CLI::App& command);
  bool asked() const { return options.width > 0 || !words.empty(); }
  /// Reads the model of words into `model`, which outlives the options, and warns if it does not
  /// fit the labels. Nothing if no search was asked for.
  std::optional<BeamOptions> open(std::optional<NgramModel>& model, const Labels& labels) const;
};

}  // namespace wisp
