// Photos of one folder, with a list of their classes. Any thread.
#pragma once

#include <string>
#include <vector>

#include "data/photos/photo_files.h"

namespace wisp {

/// The photos of one folder that a list names, in the list's order. A line has a file's name and
/// its class. All classes are names of class folders, or all are numbers from 0. Where both can be
/// meant, they are names, and a notice says so. Kaggle's ILSVRC list (LOC_val_solution.csv) is read
/// too; its names lack ".JPEG". Throws Error with file and line for another line, an unknown class,
/// names beside numbers, a file that is not there, and a file that is listed twice.
FoundPhotos photos_by_list(const std::string& folder, const std::string& list,
                           const std::vector<std::string>& classes);

}  // namespace wisp
