// A base class of data sets of speech: derived classes list the utterances. One thread.
#pragma once

#include <string>

#include "data/data_source.h"
#include "data/speech/speech_examples.h"

namespace wisp {

/// Binds data.raw_rate and the other keys for sound without a header.
void bind_raw_pcm(Config& config, RawPcm& raw);

class SpeechSource : public DataSource {
 public:
  /// Binds the keys of spectrograms, batches and augmentation. `name` is for messages: "an4".
  SpeechSource(Config& config, std::string name);

  /// The classes are the alphabet's labels, with the blank first.
  Facts facts() const override;
  Splits open(DType compute) const override;

 protected:
  /// The utterances of a split; none if there is no such split. Throws Error for data that is
  /// missing or damaged.
  virtual FoundUtterances utterances(Split split) const = 0;

 private:
  const std::string name_;
  SpeechOptions options_;  // without `compute`
  AudioAugmentOptions augment_;
  std::string alphabet_ = Alphabet::kEnglish;
  std::string noise_;  // path of a manifest of sounds
};

}  // namespace wisp
