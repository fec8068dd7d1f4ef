// The files below a directory with their contents, to tell whether a command changed any. For
// tests.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/support/temp_dir.h"

namespace wisp {

/// By path from the directory; a link is not followed.
inline std::map<std::string, std::string> files_in(const std::string& directory) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> files;
  if (!fs::exists(directory)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string name = entry.path().lexically_relative(directory).string();
    if (entry.is_symlink()) {
      files[name] = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      files[name] = read_text(entry.path().string());
    }
  }
  return files;
}

}  // namespace wisp
