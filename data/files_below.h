// A list of all files in a corpus folder and its subfolders, and of the skipped ones. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/skipped.h"

namespace wisp {

struct FilesBelow {
  std::vector<std::filesystem::path> files;  // regular files, as reached from the folder; sorted
  Skipped skipped;
};

/// All files below a folder; links are followed. Skips a link to an enclosing folder or to nothing,
/// and what is_skipped() by its name, with all below it. Throws Error that names a folder, this or
/// one below, if it is missing or cannot be read.
FilesBelow files_below(const std::string& folder);

/// The paths of all that a folder holds. Throws Error that names the folder if it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// The type of a file, or of what a link leads to; not_found for a link to nothing or to itself.
/// Throws Error if it cannot be told.
std::filesystem::file_type type_behind_links(const std::filesystem::path& path);

}  // namespace wisp
