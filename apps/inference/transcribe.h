// Transcription of sound files by a trained speech model. One thread.
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
  double confidence = 0.0;  // HeardWord::confidence
};

struct Transcript {
  std::string file;
  std::string text;
  std::vector<TimedWord> words;
  std::string error;  // why the file could not be read: text is empty then
};

/// Passes each file's transcript to `tell`, in their order: by beam search if `beam` is given, else
/// of the likeliest path. Files without a header are read as the run's data reads them. Throws
/// Error for a model that does not take sound.
void transcribe(Inference& model, std::span<const std::string> files,
                const std::optional<BeamOptions>& beam,
                const std::function<void(const Transcript&)>& tell);

}  // namespace wisp
