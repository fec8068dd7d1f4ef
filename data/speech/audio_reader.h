// A reader of sound files as samples at one rate. Any thread may call.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "data/speech/audio_file.h"
#include "data/speech/resample.h"

namespace wisp {

class AudioReader {
 public:
  /// Files *.raw and *.pcm have no header. They are of format `raw`, and refused if it has no rate.
  explicit AudioReader(int64_t rate, const RawPcm& raw = {.rate = 0}) : rate_(rate), raw_(raw) {}

  /// A file's samples at the reader's rate. Throws Error like read_audio() and resampled().
  std::vector<float> read(const std::string& path) const;
  /// The length, at the file's own rate. Throws Error like read_audio_length().
  AudioLength length(const std::string& path) const;
  /// The number of samples that read() returns for a file of this length. Throws Error with the
  /// path like Resampler, and for more than kMostAudioSamples.
  int64_t resampled(const std::string& path, const AudioLength& length) const;

 private:
  const Resampler& resampler(int64_t from) const;

  const int64_t rate_;
  const RawPcm raw_;
  mutable std::mutex mutex_;                         // guards resamplers_
  mutable std::map<int64_t, Resampler> resamplers_;  // one for each rate of files
};

}  // namespace wisp
