// Spectrograms of sound files, kept in a folder from run to run. Threads and processes may share
// the folder, and it may be removed between runs.
#pragma once

#include <functional>
#include <string>

#include "core/base/error.h"
#include "core/facts.h"
#include "core/tensor/tensor.h"
#include "data/speech/audio_file.h"

namespace wisp {

/// The folder cannot be written: no fault of the sound's.
class FeatureCacheError : public Error {
 public:
  using Error::Error;
};

/// An entry is a safetensors file with checksums, named by a hash of the sound's path and of what
/// its features depend on; it says of which inode, size and times the sound was. What is damaged,
/// cut off or of another sound is made again.
class FeatureCache {
 public:
  /// Makes the folder if there is none. Throws FeatureCacheError naming it if nothing can be
  /// written there.
  FeatureCache(std::string folder, const SpectrogramOptions& options, const RawPcm& raw);

  /// The features of a sound file: those kept, if they are of this shape, else what make() returns,
  /// f32, which is kept then. Throws Error if there is no such file, FeatureCacheError (a full
  /// disk), and what make() throws.
  Tensor find(const std::string& audio, const Shape& shape,
              const std::function<Tensor()>& make) const;

 private:
  const std::string folder_;
  const std::string settings_;  // what features depend on beside the file
};

}  // namespace wisp
