// Photos in files, in a folder for each class. Any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/photos/photo_set.h"

namespace wisp {

/// Photos in files below a folder. Takes the bytes of its name and 12 more for each photo.
class PhotoFiles final : public PhotoSet {
 public:
  explicit PhotoFiles(std::string folder) : folder_(std::move(folder)) {}

  /// Adds a photo. `path` is below the folder.
  void add(const std::string& path, int32_t label);

  int64_t count() const override { return static_cast<int64_t>(labels_.size()); }
  int32_t label(int64_t photo) const override { return labels_[static_cast<size_t>(photo)]; }
  const std::string& folder() const override { return folder_; }
  std::string name(int64_t photo) const override;
  std::string_view bytes(int64_t photo, std::string& buffer) const override;

 private:
  const std::string folder_;
  std::string paths_;           // one after the other
  std::vector<uint64_t> ends_;  // of the paths in paths_
  std::vector<int32_t> labels_;
};

/// Photos that were found, and a line for each kind of file that was passed over.
struct FoundPhotos {
  std::shared_ptr<const PhotoSet> photos;
  std::vector<std::string> notices;
};

/// The names of the folders in `folder`, sorted as bytes, without what is_skipped() by its name.
/// Throws Error if the folder cannot be read, or a link in it not followed. A link to nothing is
/// left out.
std::vector<std::string> folders_in(const std::string& folder);
/// The classes: folders_in(). Throws Error also if there are none, or if a name is no UTF-8.
std::vector<std::string> class_folders(const std::string& folder);

/// The photos in a folder for each class, sorted by class and path: torchvision's ImageFolder.
/// Files in folders of a class belong to it; a notice says so if all do. Files of other endings
/// than .jpg, .jpeg, .png and .webp are passed over, and so is what files_below() skips. A class
/// may have no photos. Throws Error for a folder that is no class, and if there are no photos at
/// all.
FoundPhotos photos_by_folder(const std::string& folder, const std::vector<std::string>& classes);

}  // namespace wisp
