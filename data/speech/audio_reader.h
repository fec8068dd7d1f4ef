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
  explicit AudioReader(int64_t rate) : rate_(rate) {}

  /// The samples of read_audio(), resampled if the file has another rate. Throws Error as that and
  /// as Resampler.
  std::vector<float> read(const std::string& path) const;
  /// How many samples read() makes of a file of this length. Throws Error as Resampler.
  int64_t resampled(const AudioLength& length) const;

 private:
  const Resampler& resampler(int64_t from) const;

  const int64_t rate_;
  mutable std::mutex mutex_;                         // guards resamplers_
  mutable std::map<int64_t, Resampler> resamplers_;  // by the files' rate: a table takes long
};

}  // namespace wisp
