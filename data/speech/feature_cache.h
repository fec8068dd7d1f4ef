// A folder that keeps spectrograms of sound files between runs. Threads and processes may share the
// folder. It may be removed between runs.
#pragma once

#include <functional>
#include <string>

#include "core/base/error.h"
#include "core/facts.h"
#include "core/tensor/tensor.h"
#include "data/speech/audio_file.h"

namespace wisp {

/// An error of the cache folder, for example that it is not writable. The sound is not at fault.
class FeatureCacheError : public Error {
 public:
  using Error::Error;
};

/// An entry is a safetensors file with checksums. Its name is a hash of the sound's path and of the
/// settings of its features. Its metadata hold the sound's inode, size and times. An entry that is
/// damaged, truncated or of another sound is made again.
class FeatureCache {
 public:
  /// Makes the folder if it is missing. Throws FeatureCacheError, naming it, if it is not writable.
  FeatureCache(std::string folder, const SpectrogramOptions& options, const RawPcm& raw);

  /// The features of a sound file, f32. Returns the stored features if they have this shape;
  /// otherwise calls make(), stores its result and returns it. Throws Error if the sound file is
  /// missing, FeatureCacheError (a full disk), and any exception of make().
  Tensor find(const std::string& audio, const Shape& shape,
              const std::function<Tensor()>& make) const;

 private:
  const std::string folder_;
  const std::string settings_;  // all that features depend on besides the file
};

}  // namespace wisp
