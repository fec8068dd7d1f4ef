#include "data/speech/speech_source.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "data/speech/audio_reader.h"
#include "data/speech/manifest.h"

namespace wisp {

void bind_raw_pcm(Config& config, RawPcm& raw) {
  config.bind(
      "data.raw_rate", raw.rate,
      "samples per second of .raw and .pcm files: 16 bits, no header; 0: those are refused");
  config.bind("data.raw_channels", raw.channels, "their channels, interleaved");
  config.bind("data.raw_big_endian", raw.big_endian, "their high bytes are first");
}

SpeechSource::SpeechSource(Config& config) {
  config.bind("data.alphabet", alphabet_,
              "characters that texts are written in; label 0 is the blank");
  config.bind("data.rate", spectrogram_.rate, "samples per second; other files are resampled");
  bind_raw_pcm(config, raw_);
  config.bind("data.window_ms", spectrogram_.window_ms, "milliseconds that a frame hears");
  config.bind("data.stride_ms", spectrogram_.stride_ms, "milliseconds from frame to frame");
  config.bind("data.mels", spectrogram_.mels, "mel bands of a frame; 0: all frequencies");
  config.bind("data.cache", cache_,
              "folder that keeps spectrograms from epoch to epoch and run to run; none: they are "
              "computed each time");
  config.bind(
      "data.frames", steps_.frames,
      "frames of a step of all workers, padding counted, instead of train.batch utterances; 0: "
      "train.batch");
  config.bind(
      "data.frequency_masks", augment_.frequency_masks,
      "bands of frequencies that become the mean in training (SpecAugment, Park et al. 2019)");
  config.bind("data.frequency_width", augment_.frequency_width, "features of such a band at most");
  config.bind("data.time_masks", augment_.time_masks, "stretches of time that become the mean");
  config.bind("data.time_width", augment_.time_width, "frames of such a stretch at most");
  config.bind("data.time_share", augment_.time_share,
              "and this share of the utterance's, in [0, 1]");
  config.bind("data.speed_percent", augment_.speed_percent,
              "percent that training hears a third of the utterances faster, and a third slower");
  config.bind("data.gain_db", augment_.gain_db,
              "dB by which they are louder or softer at most, 0 to 60");
  config.bind(
      "data.noise", noise_,
      "manifest of sounds, which needs no texts; they are mixed in as data.noise_share says");
  config.bind("data.noise_share", augment_.noise_share,
              "share of the utterances that have some, in [0, 1]");
  config.bind("data.noise_low_db", augment_.noise_low_db,
              "dB that speech is louder at least, -60 to 100");
  config.bind("data.noise_high_db", augment_.noise_high_db,
              "and at most, data.noise_low_db or more");
  check(augment_);
  WISP_CHECK(noise_.empty() == (augment_.noise_share == 0), config.where("data.noise"),
             ": data.noise is \"", noise_, "\" and data.noise_share ", augment_.noise_share,
             ", expected both or neither");
}

Facts SpeechSource::facts() const {
  const Alphabet alphabet(alphabet_);
  return {.inputs = {{.name = "spectrogram",
                      .sample = {0, Spectrogram(spectrogram_).features()},
                      .padded = true,
                      .sound = spectrogram_}},
          .classes = alphabet.size(),
          .names = alphabet.names(),
          .work = "frames"};
}

Splits SpeechSource::open(DType compute) const {
  const Alphabet alphabet(alphabet_);
  const SpeechOptions options{.spectrogram = spectrogram_,
                              .raw = raw_,
                              .steps = steps_,
                              .compute = compute,
                              .cache = cache_};
  std::vector<std::vector<float>> noises;
  const AudioReader reader(spectrogram_.rate, raw_);
  if (!noise_.empty())
    for (const Utterance& sound : read_manifest(noise_, Texts::ignored))
      noises.push_back(reader.read(sound.audio));
  Splits splits;
  const auto examples = [&](Split split, AudioAugment augment) -> std::unique_ptr<Examples> {
    auto [all, notices] = utterances(split);
    for (std::string& notice : notices)
      if (std::find(splits.notices.begin(), splits.notices.end(), notice) == splits.notices.end())
        splits.notices.push_back(std::move(notice));
    if (all.empty() && split == Split::validation) return nullptr;
    WISP_CHECK(!all.empty(), name(), ": data.", name_of(split), " is empty, expected some data");
    return std::make_unique<SpeechExamples>(concat(name(), " ", name_of(split)), std::move(all),
                                            alphabet, options, std::move(augment));
  };
  splits.train = examples(Split::train, AudioAugment(augment_, std::move(noises)));
  splits.validation = examples(Split::validation, AudioAugment({}));
  splits.test = examples(Split::test, AudioAugment({}));
  return splits;
}

}  // namespace wisp
