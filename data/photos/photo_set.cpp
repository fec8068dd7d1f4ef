#include "data/photos/photo_set.h"

#include "core/base/hash.h"

namespace wisp {

uint64_t PhotoSet::digest() const {
  uint64_t hash = hash_number(static_cast<uint64_t>(count()), hash_text(""));
  for (int64_t photo = 0; photo < count(); ++photo)
    hash = hash_number(static_cast<uint64_t>(label(photo)), hash_text(name(photo), hash));
  return hash;
}

uint64_t PhotoSubset::digest() const {
  uint64_t hash = whole_->digest();
  for (const int64_t photo : photos_) hash = hash_number(static_cast<uint64_t>(photo), hash);
  return hash;
}

}  // namespace wisp
