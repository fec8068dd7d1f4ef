#include "data/files_below.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace wisp {
namespace {

namespace fs = std::filesystem;

void check(const std::error_code& failure, const fs::path& path) {
  WISP_CHECK(!failure, path.string(), ": cannot be read: ", failure.message());
}

class Walk {
 public:
  void enter(const fs::path& folder) {
    std::error_code failure;
    const fs::path canonical = fs::canonical(folder, failure);
    check(failure, folder);
    if (!open_.empty() && (is_above(canonical) || std::ranges::count(open_, canonical) > 0))
      return skipped.add("links to a folder above them", folder);
    open_.push_back(canonical);
    for (const fs::path& path : entries_of(folder)) visit(path);
    open_.pop_back();
  }

  std::vector<fs::path> files;
  Skipped skipped;

 private:
  void visit(const fs::path& path) {
    if (skipped.by_name(path)) return;
    const fs::file_type type = type_behind_links(path);
    if (type == fs::file_type::not_found) return skipped.add("links to nothing", path);
    if (type == fs::file_type::regular) return files.push_back(path);
    if (type == fs::file_type::directory) return enter(path);
    skipped.add("pipes, sockets and devices", path);
  }
  /// Whether a folder holds the one that the walk began in.
  bool is_above(const fs::path& canonical) const {
    const fs::path& begin = open_.front();
    return std::mismatch(canonical.begin(), canonical.end(), begin.begin(), begin.end()).first ==
           canonical.end();
  }

  std::vector<fs::path> open_;  // canonical paths: the folder being read and its parents
};

}  // namespace

fs::file_type type_behind_links(const fs::path& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();
  if (type == fs::file_type::not_found || failure == std::errc::too_many_symbolic_link_levels)
    return fs::file_type::not_found;
  check(failure, path);
  return type;
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code failure;
  std::vector<fs::path> paths;
  for (fs::directory_iterator entry(folder, failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure))
    paths.push_back(entry->path());
  check(failure, folder);
  return paths;
}

FilesBelow files_below(const std::string& folder) {
  std::error_code failure;
  const fs::file_type type = fs::status(folder, failure).type();
  const bool there = type == fs::file_type::directory || type == fs::file_type::none;
  WISP_CHECK(there, folder, ": no such folder");
  Walk walk;
  walk.enter(folder);
  std::sort(walk.files.begin(), walk.files.end());
  return {std::move(walk.files), std::move(walk.skipped)};
}

}  // namespace wisp
