// Packing of photos into shards, scaled down and encoded anew if asked for. One thread calls.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/photos/photo_set.h"

namespace wisp {

struct PackOptions {
  int64_t side = 0;  // shorter side of photos that are larger; 0: the files' bytes stay
  int quality = 90;  // of JPEGs, 1 to 100
  bool raw = false;  // pixels (PPM) instead of JPEGs; needs a side
  int jobs = 1;      // threads
};

struct PackedPhotos {
  int64_t photos = 0, bytes = 0;
  std::vector<std::string> damaged;  // path and fault of photos that no decoder reads
  bool stopped = false;              // nothing was written
};

/// A line about what shards are made of: the photos' number and digest, the options but `jobs`.
std::string packing_origin(const PhotoSet& photos, const PackOptions& options);

/// Writes all photos to shards in `folder`, in a random order, so that neighbours are of different
/// classes. The order depends on the number of photos alone, and the shards do not depend on
/// `jobs`. The bytes of damaged photos stay as they are. Calls progress(photos done) now and then;
/// if it returns false, packing stops. Throws Error like PhotoShardWriter, and with the name of a
/// photo whose file cannot be read or needs a library that this build lacks.
PackedPhotos pack_photos(const PhotoSet& photos, const std::vector<std::string>& classes,
                         const std::string& folder, const PackOptions& options,
                         const std::function<bool(int64_t)>& progress);

}  // namespace wisp
