#include "apps/inference/transcribe.h"

#include <cmath>

#include "apps/inference/hear.h"
#include "core/io/input_file.h"
#include "data/speech/audio_reader.h"
#include "data/speech/spectrogram.h"
#include "data/speech/speech_source.h"

namespace wisp {
namespace {

/// How the run's data reads sound files without a header.
RawPcm raw_pcm_of(Config config) {
  RawPcm raw{.rate = 0};
  bind_raw_pcm(config, raw);
  return raw;
}

/// Features (T, F) as a batch (1, T, F) in the model's type.
Batch batch_of(const Tensor& features, DType compute) {
  const Tensor sound(features.shape().stacked(1), compute);
  dispatch_activation(compute, "transcribe", [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < features.numel(); ++i)
      store(sound.data<T>() + i, static_cast<Wide<T>>(features.data<float>()[i]));
  });
  const Tensor lengths({1}, DType::i64);
  *lengths.data<int64_t>() = features.shape()[0];
  return {.inputs = {sound}, .lengths = lengths, .count = 1};
}

Transcription heard(const Frames& frames, const Labels& labels,
                    const std::optional<BeamOptions>& beam) {
  return beam ? beam_search(frames, labels, *beam).front()
              : transcription_of(frames, best_path(frames), labels);
}

}  // namespace

void transcribe(Inference& model, std::span<const std::string> files,
                const std::optional<BeamOptions>& beam,
                const std::function<void(const Transcript&)>& tell) {
  const Facts& facts = model.facts();
  check_hears(facts, "transcribe");
  const Spectrogram spectrogram(facts.inputs[0].sound);
  const AudioReader reader(spectrogram.options().rate, raw_pcm_of(model.config()));
  for (const std::string& file : files) {
    Transcript transcript{.file = file};
    try {
      const std::vector<float> samples = reader.read(file);
      naming(file, [&] {
        const Tensor features = spectrogram.compute(samples);
        const Tensor logits = model(batch_of(features, model.compute())).output.value();
        const std::vector<float> values =
            log_probabilities_of(logits.reshape({logits.shape()[1], logits.shape()[2]}));
        const Transcription found = heard(Frames(values, facts.classes), facts.names, beam);
        // the model may output fewer frames than it reads, by a whole factor
        const double factor = std::round(static_cast<double>(features.shape()[0]) /
                                         static_cast<double>(logits.shape()[1]));
        const double seconds = 1e-3 * factor * static_cast<double>(spectrogram.options().stride_ms);
        transcript.text = found.text;
        for (const HeardWord& word : found.words)
          transcript.words.push_back({word.word, static_cast<double>(word.first_frame) * seconds,
                                      static_cast<double>(word.last_frame + 1) * seconds,
                                      word.confidence});
      });
    } catch (const Error& error) {
      transcript.error = error.what();
    }
    tell(transcript);
  }
}

}  // namespace wisp
