// What a folder of a corpus holds, links followed, and what was passed over on the way.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace wisp {

struct FilesBelow {
  std::vector<std::filesystem::path> files;  // regular ones, as reached from the folder; sorted
  std::vector<std::string> notices;          // a line for each kind of what was passed over
};

/// All files below a folder. A link to a folder that is being read, or to nothing, is passed over,
/// and so is what macOS leaves beside files on other disks, under names that begin with "._".
/// Throws Error naming it for a folder that is not there or cannot be read, this one or one below.
FilesBelow files_below(const std::string& folder);

/// "2 links to nothing passed over, as a/b", of what lies below `folder`.
std::string passed_over(const std::string& folder, const std::string& what,
                        const std::vector<std::filesystem::path>& paths);

}  // namespace wisp
