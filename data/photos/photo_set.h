// Photos on disk with a class each. Their bytes are read when they are needed. Any thread may read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/hash.h"

namespace wisp {

class PhotoSet {
 public:
  virtual ~PhotoSet() = default;
  virtual int64_t count() const = 0;
  /// The class, 0 or more.
  virtual int32_t label(int64_t photo) const = 0;
  /// The folder in which the photos are.
  virtual const std::string& folder() const = 0;
  /// The photo's path below the folder: "n01440764/n01440764_18.JPEG". Unique in the set.
  virtual std::string name(int64_t photo) const = 0;
  /// The file's bytes, in `buffer` or in the set's memory. Throws Error without the photo's name.
  virtual std::string_view bytes(int64_t photo, std::string& buffer) const = 0;
  /// A hash of the photos and their order. By default of names and classes, without reading bytes.
  virtual uint64_t digest() const {
    uint64_t hash = hash_number(static_cast<uint64_t>(count()), hash_text(""));
    for (int64_t photo = 0; photo < count(); ++photo)
      hash = hash_number(static_cast<uint64_t>(label(photo)), hash_text(name(photo), hash));
    return hash;
  }
};

/// Some photos of a set, in the given order.
class PhotoSubset final : public PhotoSet {
 public:
  PhotoSubset(std::shared_ptr<const PhotoSet> whole, std::vector<int64_t> photos)
      : whole_(std::move(whole)), photos_(std::move(photos)) {}

  int64_t count() const override { return static_cast<int64_t>(photos_.size()); }
  int32_t label(int64_t photo) const override { return whole_->label(at(photo)); }
  const std::string& folder() const override { return whole_->folder(); }
  std::string name(int64_t photo) const override { return whole_->name(at(photo)); }
  std::string_view bytes(int64_t photo, std::string& buffer) const override {
    return whole_->bytes(at(photo), buffer);
  }
  uint64_t digest() const override {
    uint64_t hash = whole_->digest();
    for (const int64_t photo : photos_) hash = hash_number(static_cast<uint64_t>(photo), hash);
    return hash;
  }

 private:
  int64_t at(int64_t photo) const { return photos_[static_cast<size_t>(photo)]; }

  const std::shared_ptr<const PhotoSet> whole_;
  const std::vector<int64_t> photos_;
};

}  // namespace wisp
