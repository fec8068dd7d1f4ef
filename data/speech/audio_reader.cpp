#include "data/speech/audio_reader.h"

#include <utility>

#include "core/io/input_file.h"

namespace wisp {
namespace {

/// Whether the file has no header by its name. Throws Error if it has none and `raw` has no rate.
bool is_raw(const std::string& path, const RawPcm& raw) {
  if (!path.ends_with(".raw") && !path.ends_with(".pcm")) return false;
  WISP_CHECK(raw.rate != 0, path,
             ": has no header, by its name, and data.raw_rate is not set; expected a FLAC, WAV or "
             "SPHERE file");
  return true;
}

}  // namespace

std::vector<float> AudioReader::read(const std::string& path) const {
  Audio audio = is_raw(path, raw_) ? read_audio(path, raw_) : read_audio(path);
  if (audio.rate == rate_) return std::move(audio.samples);
  resampled(path, {std::ssize(audio.samples), audio.rate});  // throws if it becomes too long
  return resampler(audio.rate).resample(audio.samples);
}

AudioLength AudioReader::length(const std::string& path) const {
  return is_raw(path, raw_) ? read_audio_length(path, raw_) : read_audio_length(path);
}

int64_t AudioReader::resampled(const std::string& path, const AudioLength& length) const {
  return naming(path, [&] {
    const int64_t samples = resampler(length.rate).length(length.samples);
    WISP_CHECK(samples <= kMostAudioSamples, "its ", length.samples, " samples at a rate of ",
               length.rate, " are ", samples, " at ", rate_, ", expected ", kMostAudioSamples,
               " at most");
    return samples;
  });
}

const Resampler& AudioReader::resampler(int64_t from) const {
  const std::lock_guard lock(mutex_);
  return resamplers_.try_emplace(from, from, rate_).first->second;
}

}  // namespace wisp
