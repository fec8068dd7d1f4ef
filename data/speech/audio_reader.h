// Sound files as samples at one rate. Any thread may call.
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
  /// A file whose name ends in .raw or .pcm has no header and is read as `raw` says; if that has no
  /// rate, it is refused.
  explicit AudioReader(int64_t rate, const RawPcm& raw = {.rate = 0}) : rate_(rate), raw_(raw) {}

  /// The samples of read_audio(), resampled if the file has another rate. Throws Error as that and
  /// as resampled().
  std::vector<float> read(const std::string& path) const;
  /// read_audio_length() of the file, at its own rate. Throws Error as that.
  AudioLength length(const std::string& path) const;
  /// How many samples read() makes of a file of this length. Throws Error with the path as
  /// Resampler, and for more than kMostAudioSamples.
  int64_t resampled(const std::string& path, const AudioLength& length) const;

 private:
  const Resampler& resampler(int64_t from) const;

  const int64_t rate_;
  const RawPcm raw_;
  mutable std::mutex mutex_;                         // guards resamplers_
  mutable std::map<int64_t, Resampler> resamplers_;  // by the files' rate: a table takes long
};

}  // namespace wisp
