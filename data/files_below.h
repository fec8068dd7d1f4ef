// A list of all files in a corpus folder and its subfolders, and of the skipped ones. Any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace wisp {

struct FilesBelow {
  std::vector<std::filesystem::path> files;  // regular files, as reached from the folder; sorted
  std::vector<std::string> notices;          // one line for each kind of skipped file
};

/// All files below a folder; links are followed. Skips a link to an enclosing folder or to nothing,
/// and macOS's companion files on other disks, whose names begin with "._". Throws Error that names
/// a folder, this or one below, if it is missing or cannot be read.
FilesBelow files_below(const std::string& folder);

/// Adds a notice if there are `paths`: "`folder`: 2 links to nothing were skipped, such as a/b".
void note_skipped(std::vector<std::string>& notices, const std::string& folder,
                  const std::string& what, const std::vector<std::filesystem::path>& paths);

/// The paths of all that a folder holds. Throws Error that names the folder if it cannot be read.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

/// The type of a file, or of what a link leads to; not_found for a link to nothing or to itself.
/// Throws Error if it cannot be told.
std::filesystem::file_type type_behind_links(const std::filesystem::path& path);

}  // namespace wisp
