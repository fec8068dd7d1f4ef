#include "data/speech/speech_source.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <utility>

#include "core/base/error.h"
#include "data/absent_classes.h"
#include "data/speech/audio_reader.h"
#include "data/speech/manifest.h"

namespace wisp {

void bind_raw_pcm(Config& config, RawPcm& raw) {
  config.bind(
      "data.raw_rate", raw.rate,
      "samples per second of .raw and .pcm files (16 bits, no header); 0: such files are refused");
  config.bind("data.raw_channels", raw.channels,
              "number of interleaved channels of .raw and .pcm files");
  config.bind("data.raw_big_endian", raw.big_endian, "big-endian samples in .raw and .pcm files");
}

SpeechSource::SpeechSource(Config& config, std::string name) : name_(std::move(name)) {
  SpectrogramOptions& spectrogram = options_.spectrogram;
  config.bind("data.alphabet", alphabet_, "characters of the texts; label 0 is the CTC blank");
  config.bind("data.rate", spectrogram.rate,
              "samples per second; files of other rates are resampled");
  bind_raw_pcm(config, options_.raw);
  config.bind("data.window_ms", spectrogram.window_ms, "length of a frame in milliseconds");
  config.bind("data.stride_ms", spectrogram.stride_ms, "milliseconds between frames");
  config.bind("data.mels", spectrogram.mels, "number of mel bands of a frame; 0: all frequencies");
  config.bind("data.cache", options_.cache,
              "folder of cached spectrograms for later epochs and runs; empty: no cache");
  config.bind(
      "data.frames", options_.step_frames,
      "frames of a step over all workers, padding included, instead of train.batch utterances; 0: "
      "train.batch");
  config.bind(
      "data.frequency_masks", augment_.frequency_masks,
      "number of frequency masks in training, filled with the mean (SpecAugment, Park et al. "
      "2019)");
  config.bind("data.frequency_width", augment_.frequency_width,
              "largest number of features in a frequency mask");
  config.bind("data.time_masks", augment_.time_masks,
              "number of time masks in training, filled with the mean");
  config.bind("data.time_width", augment_.time_width, "largest number of frames in a time mask");
  config.bind("data.time_share", augment_.time_share,
              "largest share of an utterance's frames in a time mask, in [0, 1]");
  config.bind("data.speed_percent", augment_.speed_percent,
              "change of speed in training, in percent: a third of the utterances faster, a third "
              "slower");
  config.bind("data.gain_db", augment_.gain_db,
              "largest change of loudness in training, in dB, 0 to 60");
  config.bind("data.noise", noise_,
              "manifest of noises mixed into training utterances (no texts needed); needs "
              "data.noise_share");
  config.bind("data.noise_share", augment_.noise_share,
              "share of the training utterances with noise, in [0, 1]");
  config.bind("data.noise_low_db", augment_.noise_low_db,
              "lowest ratio of speech to noise in dB, -60 to 100");
  config.bind("data.noise_high_db", augment_.noise_high_db,
              "highest ratio of speech to noise in dB, data.noise_low_db or more");
  check(augment_);
  WISP_CHECK(noise_.empty() == (augment_.noise_share == 0), config.where("data.noise"),
             ": data.noise is \"", noise_, "\" and data.noise_share ", augment_.noise_share,
             ", expected both or neither");
}

Facts SpeechSource::facts() const {
  const Alphabet alphabet(alphabet_);
  return {.inputs = {{.name = "spectrogram",
                      .sample = {0, Spectrogram(options_.spectrogram).features()},
                      .padded = true,
                      .sound = options_.spectrogram}},
          .classes = alphabet.size(),
          .names = alphabet.names(),
          .work = "frames"};
}

Splits SpeechSource::open(DType compute) const {
  const Alphabet alphabet(alphabet_);
  SpeechOptions options = options_;
  options.compute = compute;
  std::vector<std::vector<float>> noises;
  const AudioReader reader(options_.spectrogram.rate, options_.raw);
  if (!noise_.empty())
    for (const Utterance& sound : read_manifest(noise_, Texts::ignored))
      noises.push_back(reader.read(sound.audio));
  Splits splits;
  std::unordered_set<std::string> trained;  // paths of the training split's audio
  const auto examples = [&](Split split, AudioAugment augment) -> std::unique_ptr<SpeechExamples> {
    auto [all, notices] = utterances(split);
    for (std::string& notice : notices)
      if (std::ranges::count(splits.notices, notice) == 0)
        splits.notices.push_back(std::move(notice));
    if (all.empty() && split == Split::validation) return nullptr;
    WISP_CHECK(!all.empty(), name_, ": data.", name_of(split), " is empty, expected some data");
    int64_t again = 0;
    for (const Utterance& utterance : all)
      again += split == Split::train ? !trained.insert(utterance.audio).second
                                     : trained.contains(utterance.audio);
    if (again > 0)
      splits.notices.push_back(concat(name_, " ", name_of(split), ": ", again, " utterances have ",
                                      split == Split::train ? "the sound of another one"
                                                            : "the sound of a training utterance"));
    return std::make_unique<SpeechExamples>(concat(name_, " ", name_of(split)), std::move(all),
                                            alphabet, options, std::move(augment));
  };
  std::unique_ptr<SpeechExamples> train =
      examples(Split::train, AudioAugment(augment_, std::move(noises)));
  std::vector<bool> seen(alphabet.names().size());
  seen[0] = true;  // the blank
  for (const std::vector<int32_t>& labels : train->labels())
    for (const int32_t label : labels) seen[static_cast<size_t>(label)] = true;
  note_absent(splits.notices, concat(name_, " ", name_of(Split::train)), "labels of data.alphabet",
              "training text", seen, alphabet.names());
  splits.train = std::move(train);
  splits.validation = examples(Split::validation, AudioAugment({}));
  splits.test = examples(Split::test, AudioAugment({}));
  return splits;
}

}  // namespace wisp
