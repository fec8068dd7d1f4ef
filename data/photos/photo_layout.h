// The layouts in which photos are found: class folders, a list, shards. Any thread may call.
#pragma once

#include <string>
#include <vector>

#include "data/photos/photo_files.h"

namespace wisp {

/// A folder of photos. `path` is empty if there is none.
struct PhotoFolder {
  std::string path;
  std::string list{};  // of the photos' classes, if it has no class folders; may be empty
};

struct PhotoLayout {
  std::string train;
  PhotoFolder validation, test;
  std::vector<std::string> notices{};  // for people: a folder that is not read
};

/// Looks for train, and beside it val (valid, validation, dev) and test, in a folder, or in
/// ILSVRC/Data/CLS-LOC below it (Kaggle's ILSVRC). With both, val is the validation split, unless
/// nothing tells the classes in test; else the one that is there is the test set. A folder without
/// train is the training set itself. A list is val.txt, test.txt or LOC_val_solution.csv in the
/// folder. Throws Error if `path` is no directory, if train may be a class, because other folders
/// are beside it, and for two folders of validation.
PhotoLayout find_layout(const std::string& path);

/// The classes of a training set: of its shards, or its folders. Throws Error if there are none.
std::vector<std::string> classes_of(const std::string& folder);

/// The photos of a folder: of shards, class folders, or one folder with a list. Throws Error for
/// shards of other classes, and like PhotoShards, photos_by_folder() and photos_by_list().
FoundPhotos find_photos(const PhotoFolder& folder, const std::vector<std::string>& classes);

}  // namespace wisp
