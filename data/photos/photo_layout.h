// The layouts in which photos are found: class folders, a list, shards. Any thread may call.
#pragma once

#include <string>
#include <vector>

#include "data/photos/photo_files.h"

namespace wisp {

struct PhotoLayout {
  std::string train;
  std::string test;  // empty: there is none
  std::string list;  // of the test photos' classes, if `test` has no class folders; may be empty
};

/// Looks for train, and val, validation or test, in a folder, or in ILSVRC/Data/CLS-LOC below it
/// (Kaggle's ILSVRC). A folder without train is the training set itself. A list of the test photos
/// is val.txt or LOC_val_solution.csv in the folder. Throws Error if `path` is no directory, and if
/// train may be a class, because other folders are beside it.
PhotoLayout find_layout(const std::string& path);

/// The classes of a training set: of its shards, or its folders. Throws Error if there are none.
std::vector<std::string> classes_of(const std::string& folder);

/// The photos of a folder: of shards, class folders, or one folder with a list (empty: none).
/// Throws Error for shards of other classes, and like PhotoShards, photos_by_folder() and
/// photos_by_list().
FoundPhotos find_photos(const std::string& folder, const std::string& list,
                        const std::vector<std::string>& classes);

}  // namespace wisp
