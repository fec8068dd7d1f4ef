#include "data/speech/speech_examples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/hash.h"
#include "core/io/input_file.h"

namespace wisp {
namespace {

constexpr double kDurationTolerance = 0.1;  // seconds, manifest against file

/// The length of the file. Throws Error if the manifest has another duration.
AudioLength length_of(const Utterance& utterance, const AudioReader& reader) {
  const AudioLength length = reader.length(utterance.audio);
  const double seconds = static_cast<double>(length.samples) / static_cast<double>(length.rate);
  WISP_CHECK(utterance.seconds == 0 || std::abs(seconds - utterance.seconds) < kDurationTolerance,
             utterance.audio, ": ", seconds, " seconds, the manifest says ", utterance.seconds);
  return length;
}

int64_t rounded_up(int64_t value, int64_t quantum) {
  return (value + quantum - 1) / quantum * quantum;
}

}  // namespace

SpeechExamples::SpeechExamples(std::string name, std::vector<Utterance> utterances,
                               const Alphabet& alphabet, const SpeechOptions& options,
                               AudioAugment augment)
    : name_(std::move(name)),
      utterances_(std::move(utterances)),
      options_(options),
      spectrogram_(options.spectrogram),
      reader_(options.spectrogram.rate, options.raw),
      augment_(std::move(augment)) {
  if (!options_.cache.empty()) cache_.emplace(options_.cache, options_.spectrogram, options_.raw);
  for (const Utterance& utterance : utterances_) {
    naming(concat(name_, ": ", utterance.id), [&] {
      labels_.push_back(alphabet.labels(utterance.text));
      WISP_CHECK(!labels_.back().empty(), "the text is empty");
    });
    const int64_t samples = reader_.resampled(utterance.audio, length_of(utterance, reader_));
    const int64_t fastest = augment_.shortest(samples), least = spectrogram_.least_samples();
    WISP_CHECK(fastest >= least, utterance.audio, ": ", fastest, " samples",
               fastest < samples ? " at the highest speed" : "", ", expected at least ", least);
    samples_.push_back(samples);
  }
}

Origin SpeechExamples::origin(int64_t sample) const {
  const Utterance& utterance = utterances_[static_cast<size_t>(sample)];
  return {utterance.id, utterance.speaker};
}

uint64_t SpeechExamples::digest() const {
  uint64_t hash = hash_number(augment_.noises_digest(), Examples::digest());
  for (size_t i = 0; i < utterances_.size(); ++i) {
    hash = hash_number(static_cast<uint64_t>(samples_[i]), hash);
    for (const int32_t label : labels_[i]) hash = hash_number(static_cast<uint32_t>(label), hash);
    hash = hash_number(labels_[i].size(), hash);
  }
  return hash;
}

int64_t SpeechExamples::frames(const SampleKey& key) const {
  const int64_t samples = samples_[static_cast<size_t>(key.sample)];
  return spectrogram_.frames(augment_.length(samples, key));
}

Tensor SpeechExamples::features(const SampleKey& key) const {
  const std::string& path = utterances_[static_cast<size_t>(key.sample)].audio;
  const int64_t length = frames(key);
  const auto compute = [&] {
    const Tensor features = spectrogram_.compute(augment_.perturb(reader_.read(path), key));
    WISP_CHECK(features.shape()[0] == length, path, ": ", features.shape()[0],
               " frames, its header promised ", length);
    return features;
  };
  if (!cache_ || augment_.perturbs(key)) return compute();
  return cache_->find(path, {length, spectrogram_.features()}, compute);
}

std::vector<Piece> SpeechExamples::epoch(int64_t epoch, const Deal& deal) const {
  std::vector<int64_t> lengths, most;
  for (int64_t i = 0; i < count(); ++i) {
    lengths.push_back(frames({.seed = deal.seed, .epoch = epoch, .sample = i}));
    const int64_t slowest = augment_.longest(samples_[static_cast<size_t>(i)]);
    most.push_back(rounded_up(spectrogram_.frames(slowest), options_.quantum));
  }
  return cut_utterances(lengths, most, options_.step_frames, epoch, deal, name_);
}

void SpeechExamples::shape(const Piece& piece, Batch& batch) const {
  const auto rows = std::ssize(piece.rows);
  int64_t longest = 1, labels = 1;
  for (const int64_t utterance : piece.rows) {
    longest = std::max(longest, frames(piece.key(utterance)));
    labels = std::max<int64_t>(labels, std::ssize(labels_[static_cast<size_t>(utterance)]));
  }
  const int64_t padded = rounded_up(longest, options_.quantum);
  batch.fit({rows, padded, spectrogram_.features()}, options_.compute, {rows, labels}, rows);
  batch.lengths = batch.lengths.fitted({rows}, DType::i64);
}

std::string SpeechExamples::fill(const Piece& piece, int64_t row, const Batch& batch) const {
  const int64_t utterance = piece.rows[static_cast<size_t>(row)];
  const SampleKey drawn = piece.key(utterance);
  const int64_t length = frames(drawn), width = spectrogram_.features();
  const std::vector<int32_t>& labels = labels_[static_cast<size_t>(utterance)];
  Tensor heard;
  std::string damage;
  try {
    heard = features(drawn);
    augment_.mask(heard, drawn);
  } catch (const FeatureCacheError&) {
    throw;
  } catch (const Error& error) {
    damage = error.what();
  }
  batch.lengths.data<int64_t>()[row] = length;
  batch.samples.data<int64_t>()[row] = utterance;
  int32_t* target = batch.targets.data<int32_t>() + row * batch.targets.shape()[1];
  std::fill(target, target + batch.targets.shape()[1], -1);
  if (damage.empty()) std::copy(labels.begin(), labels.end(), target);
  const int64_t padded = batch.inputs[0].shape()[1] * width;
  dispatch_activation(options_.compute, "speech", [&](auto zero) {
    using T = decltype(zero);
    T* into = batch.inputs[0].data<T>() + row * padded;
    const int64_t known = damage.empty() ? length * width : 0;
    for (int64_t i = 0; i < known; ++i)
      store(into + i, static_cast<Wide<T>>(heard.data<float>()[i]));
    for (int64_t i = known; i < padded; ++i) store(into + i, 0);
  });
  return damage;
}

}  // namespace wisp
