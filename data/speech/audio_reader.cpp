#include "data/speech/audio_reader.h"

#include <utility>

namespace wisp {

std::vector<float> AudioReader::read(const std::string& path) const {
  Audio audio = read_audio(path);
  if (audio.rate == rate_) return std::move(audio.samples);
  return resampler(audio.rate).resample(audio.samples);
}

int64_t AudioReader::resampled(const AudioLength& length) const {
  return resampler(length.rate).length(length.samples);
}

const Resampler& AudioReader::resampler(int64_t from) const {
  const std::lock_guard lock(mutex_);
  return resamplers_.try_emplace(from, from, rate_).first->second;
}

}  // namespace wisp
