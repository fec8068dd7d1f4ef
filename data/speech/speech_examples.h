// Speech examples: utterances as spectrograms, in batches of about the same length. Any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/examples.h"
#include "data/speech/alphabet.h"
#include "data/speech/audio_augment.h"
#include "data/speech/audio_reader.h"
#include "data/speech/feature_cache.h"
#include "data/speech/spectrogram.h"
#include "data/speech/utterance.h"
#include "data/speech/utterance_batches.h"

namespace wisp {

struct SpeechOptions {
  SpectrogramOptions spectrogram;
  RawPcm raw{.rate = 0};    // format of sound without a header, as in AudioReader
  int64_t step_frames = 0;  // budget of cut_utterances()
  DType compute = DType::f32;
  int64_t quantum = 32;  // batch lengths are multiples of this number of frames
  std::string cache;     // folder of cached unperturbed features; empty: none
};

/// A batch has inputs[0], spectrograms (N, T, F) in the compute type, the longest first, zeros
/// after their ends; lengths (N) i64, the frames of each; targets (N, L) i32, the labels, then -1;
/// samples (N) i64, the utterances.
/// Audio is read when a batch is prepared, unless its spectrogram is in the cache. A file that
/// cannot be read has targets of -1 and features of zero.
class SpeechExamples final : public Examples {
 public:
  /// `name` is for messages: "an4 train". Reads the length of each file. Throws Error with the file
  /// for one that is no audio, too short for a frame, or not as long as the manifest says. Throws
  /// Error for a text that is empty or not in the alphabet, and FeatureCacheError for the cache.
  SpeechExamples(std::string name, std::vector<Utterance> utterances, const Alphabet& alphabet,
                 const SpeechOptions& options, AudioAugment augment);

  int64_t count() const override { return static_cast<int64_t>(utterances_.size()); }
  /// The labels of each utterance's text.
  const std::vector<std::vector<int32_t>>& labels() const { return labels_; }
  std::vector<Piece> epoch(int64_t epoch, const Deal& deal) const override;
  void shape(const Piece& piece, Batch& batch) const override;
  /// Throws FeatureCacheError.
  std::string fill(const Piece& piece, int64_t row, const Batch& batch) const override;
  Origin origin(int64_t sample) const override;
  /// A hash of names, lengths, labels and noises. It leaves out the sound, which is read when a
  /// batch is prepared.
  uint64_t digest() const override;

 private:
  int64_t frames(const SampleKey& key) const;
  /// The features before masks, (T, F).
  Tensor features(const SampleKey& key) const;

  const std::string name_;
  const std::vector<Utterance> utterances_;
  const SpeechOptions options_;
  const Spectrogram spectrogram_;
  const AudioReader reader_;
  const AudioAugment augment_;
  std::optional<FeatureCache> cache_;
  std::vector<int64_t> samples_;  // lengths at the spectrogram's rate
  std::vector<std::vector<int32_t>> labels_;
};

}  // namespace wisp
