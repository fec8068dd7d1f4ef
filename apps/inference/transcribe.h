// What a trained model of speech hears in sound files.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/inference/inference.h"
#include "apps/speech/beam_search.h"

namespace wisp {

struct TimedWord {
  std::string word;
  double begin_s = 0.0, end_s = 0.0;
  double confidence = 0.0;  // HeardWord's
};

struct Transcript {
  std::string file;
  std::string text;
  std::vector<TimedWord> words;
  std::string error;  // why the file could not be read; then there is no text
};

/// Tells of each file, in their order, the text of the likeliest path, or what a beam search finds.
/// Files without a header are read as the run's data reads them. Throws Error for a model that does
/// not hear sound.
void transcribe(Inference& model, std::span<const std::string> files,
                const std::optional<BeamOptions>& beam,
                const std::function<void(const Transcript&)>& tell);

}  // namespace wisp
