// Data sets of speech: derive from SpeechSource and list the utterances.
#pragma once

#include <string>
#include <vector>

#include "data/data_source.h"
#include "data/speech/speech_examples.h"

namespace wisp {

/// Binds data.raw_rate and the other keys of sound without a header.
void bind_raw_pcm(Config& config, RawPcm& raw);

class SpeechSource : public DataSource {
 public:
  /// Binds the keys that all speech has: those of spectrograms, of batches, and of what is heard
  /// differently in training.
  explicit SpeechSource(Config& config);

  /// Classes are the alphabet's labels, the blank the first.
  Facts facts() const override;
  Splits open(DType compute) const override;

 protected:
  /// For messages: "an4".
  virtual std::string name() const = 0;
  /// Throws Error for what is missing or damaged; none if there is no such split.
  virtual FoundUtterances utterances(Split split) const = 0;

 private:
  SpectrogramOptions spectrogram_;
  RawPcm raw_{.rate = 0};
  UtteranceSteps steps_;
  AudioAugmentOptions augment_;
  std::string alphabet_ = Alphabet::kEnglish;
  std::string noise_;  // a manifest of sounds
  std::string cache_;
};

}  // namespace wisp
