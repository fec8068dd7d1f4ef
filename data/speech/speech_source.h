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
  /// Binds the keys of all speech: spectrograms, batches and augmentation.
  explicit SpeechSource(Config& config);

  /// The classes are the alphabet's labels, with the blank first.
  Facts facts() const override;
  Splits open(DType compute) const override;

 protected:
  /// The data set's name for messages: "an4".
  virtual std::string name() const = 0;
  /// The utterances of a split; none if there is no such split. Throws Error for data that is
  /// missing or damaged.
  virtual FoundUtterances utterances(Split split) const = 0;

 private:
  SpectrogramOptions spectrogram_;
  RawPcm raw_{.rate = 0};
  int64_t step_frames_ = 0;
  AudioAugmentOptions augment_;
  std::string alphabet_ = Alphabet::kEnglish;
  std::string noise_;  // path of a manifest of sounds
  std::string cache_;
};

}  // namespace wisp
