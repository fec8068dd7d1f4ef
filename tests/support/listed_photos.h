// The photos of a set as text, for tests.
#pragma once

#include <string>
#include <vector>

#include "data/photos/photo_set.h"

namespace wisp {

/// "path label" of each photo.
inline std::vector<std::string> listed(const PhotoSet& photos) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < photos.count(); ++i)
    names.push_back(photos.name(i) + " " + std::to_string(photos.label(i)));
  return names;
}

}  // namespace wisp
